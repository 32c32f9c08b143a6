"""Authenticate requests by their headers, and limit their rate."""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from muster.collector.pod_directory import PodDirectory, PodIdentity
from muster.collector.server.limits import Rate, RequestLimiter
from muster.collector.server.refusal import RefusalReason, RequestRefused
from muster.collector.trust.tokens import PodClaim, TokenVerifier

POD_RATE = Rate(per_second=20.0, burst=100.0)
"""The maximum rate of one pod's requests, far above an agent's rate: it sends one report at a time."""

MAX_PODS = 50_000

UNAUTHENTICATED_RATE = Rate(per_second=10.0, burst=50.0)
"""The maximum rate of requests from one address without a valid token, or with the token of a pod of no job.

Each of these requests may cost a signature check.
"""

MAX_ADDRESSES = 10_000

UNKNOWN_POD_SECONDS = 1.0
"""Retry-After for an unknown pod: its agent may report before the operator has observed the pod."""

_SCHEME = "Bearer "


@dataclass(frozen=True)
class AuthenticatedPod:
    """A pod with a valid token."""

    pod: PodClaim
    pod_identity: PodIdentity


class Authenticator:
    """Checks tokens and rates, and calls `on_authenticated` with a connection's pod."""

    def __init__(
        self,
        verifier: TokenVerifier,
        directory: PodDirectory,
        on_authenticated: Callable[[web.BaseRequest, PodClaim], None],
    ) -> None:
        self._verifier = verifier
        self._directory = directory
        self._on_authenticated = on_authenticated
        self._pod_limiter = RequestLimiter(POD_RATE, MAX_PODS)
        self._address_limiter = RequestLimiter(UNAUTHENTICATED_RATE, MAX_ADDRESSES)

    def authenticate(self, request: web.BaseRequest, now: float) -> AuthenticatedPod:
        """Authenticate a request at `now` (Unix seconds), by its headers only. Raises `RequestRefused`."""
        pod = self._identify(request, now)
        wait = self._pod_limiter.take_token(pod.pod_uid, now)
        if wait > 0.0:
            raise RequestRefused(RefusalReason.TOO_FAST, wait)
        pod_identity = self._directory.find(pod.pod_uid)
        if pod_identity is None:
            raise RequestRefused(RefusalReason.UNKNOWN_POD, UNKNOWN_POD_SECONDS)
        # any pod of the cluster can get a token with muster's audience: authenticate only the pods of jobs
        self._on_authenticated(request, pod)
        return AuthenticatedPod(pod, pod_identity)

    def _identify(self, request: web.BaseRequest, now: float) -> PodClaim:
        header = request.headers.get("Authorization", "")
        token = header.removeprefix(_SCHEME) if header.startswith(_SCHEME) else ""
        # a cached token is exempt from the rate limit of its address
        claim = self._verifier.find_cached_claim(token, now)
        if claim is not None:
            return claim
        address = request.remote or ""
        # charge the address first, and refund a request with a valid token of a job's pod
        if self._address_limiter.take_token(address, now) > 0.0:
            raise RequestRefused(RefusalReason.TOO_FAST, 1.0)
        if not token:
            raise RequestRefused(RefusalReason.NO_TOKEN)
        claim = self._verifier.verify(token, now)
        if self._directory.find(claim.pod_uid) is not None:
            self._address_limiter.return_token(address, now)
        return claim
