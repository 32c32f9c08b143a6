"""Show a job on a cluster and the output of its ranks until the job has ended, and suspend it after Ctrl-C."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace

from muster.api.document import JSON
from muster.api.names import SHORT_NAME
from muster.cli.board.observed_job import ObservedJob, build_view
from muster.cli.board.rank_lines import parse_line, should_show
from muster.cli.board.view import View
from muster.cli.cluster_run.options import ClusterRunOptions
from muster.cli.display import Display
from muster.cli.jobs.api_problems import explain_request_error
from muster.cli.jobs.cluster import ClusterJob
from muster.cli.jobs.log_follower import LogFollower
from muster.cli.jobs.watched_job import JobDeleted, watch_job
from muster.cli.run.stop_signals import StopRequest, StopSignals
from muster.cli.run.summary import is_complete
from muster.clients.kubernetes.backoff import compute_backoff_seconds
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS

FAILED = 1

_TICK_SECONDS = 0.5
_LAST_LINES_SECONDS = 10.0
"""How long the command waits for the last lines after the end of the job: a kubelet may be unreachable."""


@dataclass
class AttachedRun:
    """The display of the job with this uid. After the first Ctrl-C it suspends the job, and after the second it ends.

    `print_line` and `print_note` get the output of the ranks (`LogOutput`).
    """

    target: ClusterJob
    uid: str
    display: Display
    options: ClusterRunOptions
    has_pods: bool = True
    observed_job: ObservedJob | None = None
    _last_lines: dict[int, str] = field(default_factory=dict)
    _notice: str = ""
    _suspension: asyncio.Task[None] | None = None
    _leaves: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> int:
        """Show the job until it has ended; return the exit code. Raises `ApiError`."""
        signals = StopSignals(self._stop)
        signals.install_handlers(asyncio.get_running_loop())
        following = asyncio.create_task(self._follow())
        others = [asyncio.create_task(self._leaves.wait()), asyncio.create_task(self._tick())]
        try:
            await asyncio.wait({following, others[0]}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
        finally:
            for task in (following, *others, *([self._suspension] if self._suspension is not None else [])):
                task.cancel()
                with suppress(asyncio.CancelledError, ApiError):
                    await task
            self._notice = ""
            self.display.close(self._make_view())
        return self._finish(signals.exit_code)

    def print_line(self, pod: str, text: str) -> None:
        """Show a line of a pod's log."""
        line = parse_line(pod, text)
        if line.rank is not None:
            self._last_lines[line.rank] = line.text
        if self.options.shows_logs and should_show(line, self.options.ranks):
            self.display.show_line(line)

    def print_note(self, text: str) -> None:
        """Show why a pod has no log. The job's messages are on the board."""
        if self.observed_job is None or text != self.observed_job.status.message:
            self.display.show_note(text)

    async def _follow(self) -> None:
        """Show each change, until the job has ended, was refused, or is suspended after Ctrl-C."""
        follower = LogFollower(self.target, None, self)
        with suppress(JobDeleted):
            async with aclosing(watch_job(self.target)) as jobs:
                async for observed_job in jobs:
                    if observed_job.uid != self.uid:
                        raise JobDeleted
                    self.observed_job = observed_job
                    self._show()
                    if self.has_pods:
                        await follower.update(observed_job)
                    if observed_job.is_over or observed_job.is_refused or self._is_stopped(observed_job):
                        with suppress(TimeoutError):
                            async with asyncio.timeout(_LAST_LINES_SECONDS):
                                await follower.wait_for_end()
                        return
        self.observed_job = None
        self.display.show_note(f"{self.target} was deleted")

    def _is_stopped(self, job: ObservedJob) -> bool:
        is_observed = job.status.observed_generation >= job.generation and job.status.is_suspended
        return self._suspension is not None and is_observed

    def _stop(self, request: StopRequest) -> None:
        if self._suspension is not None:
            self._leaves.set()
            return
        self._notice = f"suspending {self.target} after {request.cause} (Ctrl-C again to leave at once)"
        self.display.show_note(self._notice)
        self._suspension = asyncio.create_task(self._suspend())

    async def _suspend(self) -> None:
        """Suspend the job, across failures of the API server."""
        failures = 0
        while True:
            try:
                fields: dict[str, JSON] = {"metadata": {"uid": self.uid}, "spec": {"suspend": True}}
                await self.target.client.merge(JOBS, self.target.namespace, self.target.name, fields)
            except ApiError as error:
                if not error.is_temporary:
                    self.display.show_note(
                        f"{self.target} can't be suspended and continues: {explain_request_error(error)}"
                    )
                    self._leaves.set()
                    return
                await asyncio.sleep(compute_backoff_seconds(failures, error, random.random()))  # noqa: S311 - spreads requests
                failures += 1
            else:
                return

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._show()

    def _show(self) -> None:
        view = self._make_view()
        if view is not None:
            self.display.show(view)

    def _make_view(self) -> View | None:
        if self.observed_job is None:
            return None
        view = build_view(self.observed_job, time.time())
        return replace(view, last_lines=self._last_lines, notice=self._notice)

    def _finish(self, signal_code: int | None) -> int:
        """Say what the user can do next, and return the exit code."""
        job = self.observed_job
        if job is None:
            return FAILED
        if is_complete(job.status):
            return 0
        if not job.is_over and signal_code is not None:
            state = "is suspended" if job.status.is_suspended else "will be suspended"
            self.display.show_note(
                f"{self.target} {state}: `muster ranks {job.name}` shows it, `muster resume {job.name}` continues it, "
                f"`kubectl delete {SHORT_NAME} {job.name}` deletes it"
            )
            return signal_code
        self.display.show_note(f"`muster describe {job.name}` shows the failure, and what to do")
        return FAILED if signal_code is None else signal_code
