"""Authenticate requests and limit their rate: from a request's headers to a pod's place in its job."""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from muster.collector.directory import Directory, Member
from muster.collector.door.limits import Limiter, Rate
from muster.collector.door.refusal import Reason, Refused
from muster.collector.trust.tokens import PodClaim, Verifier

POD_RATE = Rate(per_second=20.0, burst=100.0)
"""The request rate of one pod: an agent sends one report at a time and stays far below."""

MAX_PODS = 50_000

UNAUTHENTICATED_RATE = Rate(per_second=10.0, burst=50.0)
"""The rate of requests without a valid token, from one address: each may cost a signature check."""

MAX_ADDRESSES = 10_000

UNKNOWN_POD_SECONDS = 1.0
"""Retry-After for an unknown pod: it may report before the operator has observed it."""

_SCHEME = "Bearer "


@dataclass(frozen=True)
class Admitted:
    """A pod with a valid token."""

    pod: PodClaim
    member: Member


class Admission:
    """Checks tokens and rates; calls `trust` with the pod of a connection."""

    def __init__(
        self, verifier: Verifier, directory: Directory, trust: Callable[[web.BaseRequest, PodClaim], None]
    ) -> None:
        self._verifier = verifier
        self._directory = directory
        self._trust = trust
        self._pods = Limiter(POD_RATE, MAX_PODS)
        self._unauthenticated = Limiter(UNAUTHENTICATED_RATE, MAX_ADDRESSES)

    def admit(self, request: web.BaseRequest, now: float) -> Admitted:
        """Find the sender of `request` at `now` (Unix seconds). Raises `Refused`. Reads only the headers."""
        pod = self._identify(request, now)
        wait = self._pods.take(pod.pod_uid, now)
        if wait > 0.0:
            raise Refused(Reason.TOO_FAST, wait)
        member = self._directory.find(pod.pod_uid)
        if member is None:
            raise Refused(Reason.UNKNOWN_POD, UNKNOWN_POD_SECONDS)
        # any pod of the cluster can get a token with our audience, but only pods of jobs are trusted
        self._trust(request, pod)
        return Admitted(pod, member)

    def _identify(self, request: web.BaseRequest, now: float) -> PodClaim:
        header = request.headers.get("Authorization", "")
        token = header.removeprefix(_SCHEME) if header.startswith(_SCHEME) else ""
        # a known pod doesn't pay for other requests from its address
        claim = self._verifier.recall(token, now)
        if claim is not None:
            return claim
        address = request.remote or ""
        # charge before the work, and refund a valid request
        if self._unauthenticated.take(address, now) > 0.0:
            raise Refused(Reason.TOO_FAST, 1.0)
        if not token:
            raise Refused(Reason.NO_TOKEN)
        claim = self._verifier.verify(token, now)
        if self._directory.find(claim.pod_uid) is not None:
            self._unauthenticated.give_back(address, now)
        return claim
