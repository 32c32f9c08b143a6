"""A run on this machine as it is shown: its board while it goes on, its last words, its exit code."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, cast

from rich.console import Console

from muster.api.spec import Job
from muster.api.status import Status
from muster.backends.local.folder_lock import FolderInUse
from muster.backends.local.layout import RunLayout
from muster.backends.local.processes import OnLine
from muster.cli.display import Display, display_on
from muster.cli.ending import ending, is_complete
from muster.cli.options import RunOptions
from muster.cli.problem import BadInput, system_problem
from muster.cli.rank_lines import is_wanted, read_line
from muster.cli.resource import resource_text
from muster.cli.standard_error import StandardError
from muster.cli.stop import Stop, StopSignals
from muster.cli.view import View
from muster.plan.facts import JobFacts
from muster.plan.world import procs_per_node
from muster.runtime.local_run import LocalRun, Session
from muster.runtime.reconcile import ReconcileResult
from muster.runtime.steady_clock import steady_clock
from muster.storage.errors import StorageError

FAILED = 1


class Opener(Protocol):
    """Opens what a run runs on; on leaving, it ends every process that is left."""

    def __call__(self, *, on_line: OnLine, clock: Callable[[], float]) -> AbstractAsyncContextManager[Session]:
        """`on_line` hears each line of a node's output, `clock` gives Unix seconds."""
        ...


_TICK_SECONDS = 0.5


def new_display() -> Display:
    """Where a run is shown: on standard error."""
    return display_on(Console(file=cast(IO[str], StandardError(sys.stderr)), highlight=False))


def run_or_explain(display: Display, work: Callable[[], int]) -> int:
    """The exit code that `work` returns, or that of what kept it from its work, which is said. Raises `BadInput`."""
    try:
        return work()
    except FolderInUse as error:
        raise BadInput(f"{error}; choose another with --dir") from None
    except StorageError as error:
        problem = f"{error.reason}: {error.message}"
    except OSError as error:
        # a folder that can't be made, a full disk, no more processes: nothing of it is a mistake in muster
        problem = system_problem(error)
    display.close(None)
    display.note(f"muster: {problem}")
    return FAILED


@dataclass
class Run:
    """What changes while a run goes on, and who is told."""

    job: Job
    layout: RunLayout
    display: Display
    options: RunOptions
    signals: StopSignals | None = None
    _result: ReconcileResult[JobFacts] | None = None
    _started_at: float = field(default_factory=time.monotonic)
    _last_lines: dict[int, str] = field(default_factory=dict)
    _notice: str = ""

    async def run(self, opener: Opener) -> ReconcileResult[JobFacts]:
        """Open the backend, go around until the job is over, and clean up."""
        clock = steady_clock(time.time(), time.monotonic)
        async with opener(on_line=self._hear, clock=clock) as session:

            def stop(request: Stop) -> None:
                self._say_stopping(request)
                session.backend.request_stop(request.by, request.grace_seconds)
                session.changed.set()

            loop = LocalRun(self.job, session.backend, session.changed, clock, self._publish)
            self.signals = StopSignals(stop)
            self.signals.listen(asyncio.get_running_loop())
            ticker = asyncio.create_task(self._tick())
            try:
                return await loop.run()
            finally:
                ticker.cancel()

    def end_notice(self) -> None:
        """Nothing is being stopped any more."""
        self._notice = ""

    def view(self) -> View | None:
        """The run as it stands; None before the first turn."""
        if self._result is None:
            return None
        elapsed = time.monotonic() - self._started_at
        return View(
            name=self.job.metadata.name,
            procs_per_node=procs_per_node(self.job),
            status=self._result.status,
            elapsed=elapsed,
            facts=self._result.facts,
            last_lines=self._last_lines,
            notice=self._notice,
        )

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._show()

    def _publish(self, result: ReconcileResult[JobFacts]) -> None:
        self._result = result
        self._show()

    def _show(self) -> None:
        view = self.view()
        if view is not None:
            self.display.show(view)

    def _hear(self, node: int, text: str) -> None:
        line = read_line(self.layout.node_name(node), text)
        if line.rank is not None:
            self._last_lines[line.rank] = line.text
        if self.options.shows_logs and is_wanted(line, self.options.ranks):
            self.display.line(line)

    def _say_stopping(self, request: Stop) -> None:
        if request.grace_seconds > 0:
            self._notice = f"stopping after {request.by} (Ctrl-C again to kill at once)"
        else:
            self._notice = f"killing after {request.by}"
        self.display.note(self._notice)
        self._show()


def finish(run: Run, job: Job, result: ReconcileResult[JobFacts]) -> int:
    """Say how it ended, leave the resource in the run's folder and, when asked for, on standard output."""
    options, layout = run.options, run.layout
    run.end_notice()
    run.display.close(run.view())
    layout.resource.write_text(resource_text(job, result.status, "yaml"), encoding="utf-8")
    for line in ending(result.status, result.facts, layout, Path.cwd()):
        run.display.note(line)
    if options.output is not None:
        sys.stdout.write(resource_text(job, result.status, options.output))
    return _exit_code(run.signals, result.status)


def _exit_code(signals: StopSignals | None, status: Status) -> int:
    if is_complete(status):
        return 0
    stopped = signals.exit_code if signals is not None else None
    return FAILED if stopped is None else stopped
