"""Handle agents' long polls: at most one for each pod."""

import asyncio
from dataclasses import dataclass

from muster.collector.server.refusal import RefusalReason, RequestRefused
from muster.collector.store import RankStore
from muster_worker.contract.schema import Command, Order


@dataclass
class _Poll:
    timeout: asyncio.Timeout
    is_replaced: bool = False


class LongPolls:
    """The current long polls of all pods."""

    def __init__(self, store: RankStore) -> None:
        self._store = store
        self._polls: dict[str, _Poll] = {}

    async def wait_for_command(
        self, pod_uid: str, job_uid: str, node: int, after: Order | None, seconds: float
    ) -> Command | None:
        """Return the first command after `after`; None if no command arrives within `seconds`.

        Raises `RequestRefused` (TooManyPolls) if the pod polls again meanwhile, and `UnknownJob` if the job is removed.
        """
        poll = self._begin(pod_uid, asyncio.timeout(seconds))
        try:
            async with poll.timeout:
                return await self._store.wait_for_command(job_uid, node, after)
        except TimeoutError:
            if poll.is_replaced:
                raise RequestRefused(RefusalReason.TOO_MANY_POLLS, 1.0) from None
            return None
        finally:
            if self._polls.get(pod_uid) is poll:
                del self._polls[pod_uid]

    def close(self) -> None:
        """End all polls now."""
        for poll in self._polls.values():
            _end(poll)

    def _begin(self, pod_uid: str, timeout: asyncio.Timeout) -> _Poll:
        older = self._polls.get(pod_uid)
        if older is not None:
            # an agent sends one poll at a time: the older poll belongs to a lost connection
            older.is_replaced = True
            _end(older)
        poll = self._polls[pod_uid] = _Poll(timeout)
        return poll


def _end(poll: _Poll) -> None:
    if not poll.timeout.expired():
        poll.timeout.reschedule(asyncio.get_running_loop().time())
