"""Authenticate requests by their headers, and limit their rate."""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from muster.collector.pod_directory import Member, PodDirectory
from muster.collector.server.limits import Limiter, Rate
from muster.collector.server.refusal import Reason, RequestRefused
from muster.collector.trust.tokens import PodClaim, Verifier

POD_RATE = Rate(per_second=20.0, burst=100.0)
"""The maximum rate of one pod's requests, far above an agent's rate: it sends one report at a time."""

MAX_PODS = 50_000

UNAUTHENTICATED_RATE = Rate(per_second=10.0, burst=50.0)
"""The maximum rate of one address' requests without a valid token: each may cost a signature check."""

MAX_ADDRESSES = 10_000

UNKNOWN_POD_SECONDS = 1.0
"""Retry-After for an unknown pod: its agent may report before the operator has observed the pod."""

_SCHEME = "Bearer "


@dataclass(frozen=True)
class AuthenticatedPod:
    """A pod with a valid token."""

    pod: PodClaim
    member: Member


class Admission:
    """Checks tokens and rates, and calls `trust` with a connection's pod."""

    def __init__(
        self, verifier: Verifier, directory: PodDirectory, trust: Callable[[web.BaseRequest, PodClaim], None]
    ) -> None:
        self._verifier = verifier
        self._directory = directory
        self._trust = trust
        self._pods = Limiter(POD_RATE, MAX_PODS)
        self._unauthenticated = Limiter(UNAUTHENTICATED_RATE, MAX_ADDRESSES)

    def admit(self, request: web.BaseRequest, now: float) -> AuthenticatedPod:
        """Authenticate a request at `now` (Unix seconds), by its headers only. Raises `RequestRefused`."""
        pod = self._identify(request, now)
        wait = self._pods.take(pod.pod_uid, now)
        if wait > 0.0:
            raise RequestRefused(Reason.TOO_FAST, wait)
        member = self._directory.find(pod.pod_uid)
        if member is None:
            raise RequestRefused(Reason.UNKNOWN_POD, UNKNOWN_POD_SECONDS)
        # any pod of the cluster can get a token with muster's audience, but only jobs' pods are trusted
        self._trust(request, pod)
        return AuthenticatedPod(pod, member)

    def _identify(self, request: web.BaseRequest, now: float) -> PodClaim:
        header = request.headers.get("Authorization", "")
        token = header.removeprefix(_SCHEME) if header.startswith(_SCHEME) else ""
        # a cached token is exempt from the rate limit of its address
        claim = self._verifier.find_cached_claim(token, now)
        if claim is not None:
            return claim
        address = request.remote or ""
        # charge the address first, and refund a request with a valid token
        if self._unauthenticated.take(address, now) > 0.0:
            raise RequestRefused(Reason.TOO_FAST, 1.0)
        if not token:
            raise RequestRefused(Reason.NO_TOKEN)
        claim = self._verifier.verify(token, now)
        if self._directory.find(claim.pod_uid) is not None:
            self._unauthenticated.give_back(address, now)
        return claim
