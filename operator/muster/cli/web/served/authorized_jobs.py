"""The jobs that one reader may see. Each call asks again for the reader's rights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.names import GROUP, MAX_NAME_CHARS, NAME_PATTERN, NAMESPACE_PATTERN, PLURAL
from muster.cli.board.frame import Frame
from muster.cli.board.rank_output import RankOutput
from muster.cli.web.cluster_jobs import ClusterJobs
from muster.cli.web.job_frames import JobFrames
from muster.cli.web.job_list import describe_missing
from muster.cli.web.served.namespace_watches import NamespaceWatches
from muster.cli.web.served.reviewer import Reviewer, ReviewFailed
from muster.cli.web.source import JobEntry, JobNotFound, NotShown
from muster.objects.kubernetes.reviews import ResourceAttributes


@dataclass(frozen=True)
class Board:
    """What all readers share. `shows_logs`: whether the board's own account may read logs."""

    reviewer: Reviewer
    watches: NamespaceWatches
    frames: JobFrames
    shows_logs: bool


@dataclass(frozen=True)
class AuthorizedJobs:
    """The jobs for the holder of `token`. `namespace` is the one to list; "": all.

    The answer about a job is the same whether the job does not exist or the reader may not see it.
    """

    board: Board
    token: str
    namespace: str

    async def list_jobs(self) -> Sequence[JobEntry]:
        """Return the newest jobs of the namespace. Raises `NotShown`."""
        namespace = self.namespace
        is_name = not namespace or re.fullmatch(NAMESPACE_PATTERN, namespace)
        if not (is_name and self.board.watches.serves(namespace) and await self._may(("list",), namespace)):
            where = f"in the namespace {namespace}" if namespace else "of all namespaces: enter a namespace"
            raise NotShown(f"you may not list the {PLURAL} {where}")
        return (await self._get_jobs(namespace)).jobs.list_newest()

    async def read_frame(self, key: str) -> Frame:
        """Return the job's newest frame. Raises `JobNotFound` and `NotShown`."""
        return await (await self._open(key)).read_frame(key)

    async def read_rank(self, key: str, rank: int) -> RankOutput:
        """Return the rank's last output. Raises `JobNotFound` and `NotShown`."""
        jobs = await self._open(key)
        namespace, name = split_key(key)
        if not self.board.shows_logs:
            raise NotShown(f"this board shows no logs: muster logs {name} --rank {rank} -n {namespace}")
        if not await self._is_allowed(ResourceAttributes(namespace, "get", "", "pods", "log")):
            raise NotShown(f"you may not get pods/log in the namespace {namespace}")
        return await jobs.read_rank(key, rank)

    async def _open(self, key: str) -> ClusterJobs:
        """Return the jobs of the key's namespace. Raises `JobNotFound` for readers who may not see the job."""
        namespace, name = split_key(key)
        if not (self.board.watches.serves(namespace) and await self._may(("get", "watch"), namespace, name)):
            raise JobNotFound(describe_missing(key))
        return await self._get_jobs(namespace)

    async def _get_jobs(self, namespace: str) -> ClusterJobs:
        watches = self.board.watches
        return ClusterJobs(watches.client, await watches.get_jobs(namespace), self.board.frames)

    async def _may(self, verbs: Sequence[str], namespace: str, name: str = "") -> bool:
        for verb in verbs:
            if not await self._is_allowed(ResourceAttributes(namespace, verb, GROUP, PLURAL, name=name)):
                return False
        return True

    async def _is_allowed(self, attributes: ResourceAttributes) -> bool:
        reviewer = self.board.reviewer
        try:
            user = await reviewer.authenticate(self.token)
            return user is not None and await reviewer.is_allowed(user, attributes)
        except ReviewFailed as error:
            raise NotShown(str(error)) from None


def split_key(key: str) -> tuple[str, str]:
    """Return the namespace and the name of a job. Raises `JobNotFound` for names that no job has."""
    namespace, _, name = key.partition(".")
    is_name = len(name) <= MAX_NAME_CHARS and re.fullmatch(NAME_PATTERN, name)
    if not is_name or not re.fullmatch(NAMESPACE_PATTERN, namespace):
        raise JobNotFound("there is no such job")
    return namespace, name
