"""Who may ask, and how often: from a request's headers to a pod's place in its job."""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from muster.collector.directory import Directory, Member
from muster.collector.door.limits import Limiter, Rate
from muster.collector.door.refusal import Reason, Refused
from muster.collector.trust.tokens import PodClaim, Verifier

POD_RATE = Rate(per_second=20.0, burst=100.0)
"""Requests of one pod. An agent has one report in flight and collects events meanwhile: it stays far below."""

MAX_PODS = 50_000

STRANGER_RATE = Rate(per_second=10.0, burst=50.0)
"""Requests without a good token, from one address: each may cost a signature's verification."""

MAX_ADDRESSES = 10_000

UNKNOWN_POD_SECONDS = 1.0
"""A pod may report before the operator has heard that it exists."""

_SCHEME = "Bearer "


@dataclass(frozen=True)
class Admitted:
    """A pod that may ask."""

    pod: PodClaim
    member: Member


class Admission:
    """Checks tokens and rates; `trust` hears which connection turned out to be which known pod's."""

    def __init__(
        self, verifier: Verifier, directory: Directory, trust: Callable[[web.BaseRequest, PodClaim], None]
    ) -> None:
        self._verifier = verifier
        self._directory = directory
        self._trust = trust
        self._pods = Limiter(POD_RATE, MAX_PODS)
        self._strangers = Limiter(STRANGER_RATE, MAX_ADDRESSES)

    def admit(self, request: web.BaseRequest, now: float) -> Admitted:
        """Who sends `request` at `now` (Unix seconds). Raises `Refused`. Reads nothing but the headers."""
        pod = self._identify(request, now)
        wait = self._pods.take(pod.pod_uid, now)
        if wait > 0.0:
            raise Refused(Reason.TOO_FAST, wait)
        member = self._directory.find(pod.pod_uid)
        if member is None:
            raise Refused(Reason.UNKNOWN_POD, UNKNOWN_POD_SECONDS)
        # any pod of the cluster may ask for a token with our audience: its place is a job's pod's
        self._trust(request, pod)
        return Admitted(pod, member)

    def _identify(self, request: web.BaseRequest, now: float) -> PodClaim:
        header = request.headers.get("Authorization", "")
        token = header.removeprefix(_SCHEME) if header.startswith(_SCHEME) else ""
        # a pod that was here before doesn't pay for what others at its address do
        claim = self._verifier.recall(token, now)
        if claim is not None:
            return claim
        address = request.remote or ""
        # paid before the work, and given back to who was good
        if self._strangers.take(address, now) > 0.0:
            raise Refused(Reason.TOO_FAST, 1.0)
        if not token:
            raise Refused(Reason.NO_TOKEN)
        claim = self._verifier.verify(token, now)
        if self._directory.find(claim.pod_uid) is not None:
            self._strangers.give_back(address, now)
        return claim
