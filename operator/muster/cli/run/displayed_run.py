"""Run a job on this machine, and show its board and its summary."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.api.yaml.serialise import serialise_resource
from muster.backends.local.folder_lock import FolderInUse
from muster.backends.local.layout import RunLayout
from muster.backends.local.log_tail import BACKLOG_BYTES, LineReader
from muster.cli.board.rank_lines import parse_line, should_show
from muster.cli.board.view import View
from muster.cli.display import Display
from muster.cli.errors import BadInput, format_os_error
from muster.cli.listing.list_jobs import print_rows
from muster.cli.listing.rows import read_row
from muster.cli.options import RunOptions
from muster.cli.output import TextFormat
from muster.cli.resource import format_resource
from muster.cli.run.frame_file import FrameFile
from muster.cli.run.stop_signals import StopRequest, StopSignals
from muster.cli.run.summary import is_complete, summarize_run
from muster.core.facts import JobFacts
from muster.core.world import get_procs_per_node
from muster.engine.local_run import LocalRun, Session
from muster.engine.reconcile import ReconcileResult
from muster.engine.steady_clock import create_steady_clock
from muster.render.storage.errors import StorageError

FAILED = 1


class SessionOpener(Protocol):
    """Opens a session of the run's backend, which kills the remaining processes when it exits."""

    def __call__(self, *, reader: LineReader, clock: Callable[[], float]) -> AbstractAsyncContextManager[Session]:
        """Open a session. `reader` gets the lines of the nodes' output, and `clock` returns Unix seconds."""
        ...


_TICK_SECONDS = 0.5


def run_or_report(display: Display, work: Callable[[], int]) -> int:
    """Run `work` and return its exit code, or report the error that ended it. Raises `BadInput`."""
    try:
        return work()
    except FolderInUse as error:
        raise BadInput(f"{error}; choose another with --dir") from None
    except StorageError as error:
        problem = f"{error.reason}: {error.message}"
    except OSError as error:
        # A system error, such as a full disk, is not a bug in muster.
        problem = format_os_error(error)
    display.close(None)
    display.show_note(f"muster: {problem}")
    return FAILED


@dataclass
class DisplayedRun:
    """The state of a run, and its display."""

    job: Job
    layout: RunLayout
    display: Display
    options: RunOptions
    signals: StopSignals | None = None
    _result: ReconcileResult[JobFacts] | None = None
    _started_at: float = field(default_factory=time.monotonic)
    _last_lines: dict[int, str] = field(default_factory=dict)
    _notice: str = ""
    _frame_file: FrameFile = field(init=False)

    def __post_init__(self) -> None:
        self._frame_file = FrameFile(self.layout.frame)

    async def run(self, opener: SessionOpener) -> ReconcileResult[JobFacts]:
        """Open the backend, reconcile until the job has ended, and clean up."""
        clock = create_steady_clock(time.time(), time.monotonic)
        # What is piped into a file or a program is whole.
        may_miss_lines = sys.stderr.isatty() or not self.options.shows_logs
        reader = LineReader(self._show_line, BACKLOG_BYTES if may_miss_lines else None)
        async with opener(reader=reader, clock=clock) as session:

            def stop(request: StopRequest) -> None:
                self._show_stopping(request)
                session.backend.request_stop(request.cause, request.grace_seconds)
                session.change_event.set()

            local_run = LocalRun(self.job, session.backend, session.change_event, clock, self._publish)
            self.signals = StopSignals(stop)
            self.signals.install_handlers(asyncio.get_running_loop())
            ticker = asyncio.create_task(self._tick())
            try:
                return await local_run.run()
            finally:
                ticker.cancel()

    def remove_notice(self) -> None:
        """Remove the notice about stopping."""
        self._notice = ""

    def make_view(self) -> View | None:
        """Return the current view of the run; None before the first reconcile."""
        if self._result is None:
            return None
        elapsed = time.monotonic() - self._started_at
        return View(
            name=self.job.metadata.name,
            procs_per_node=get_procs_per_node(self.job),
            status=self._result.status,
            elapsed_seconds=elapsed,
            facts=self._result.facts,
            last_lines=self._last_lines,
            notice=self._notice,
        )

    def write_frame(self) -> None:
        """Write the current frame for `muster board`."""
        view = self.make_view()
        problem = None if view is None else self._frame_file.write(view)
        if problem is not None:
            self.display.show_note(problem)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._show()
            self.write_frame()

    def _publish(self, result: ReconcileResult[JobFacts]) -> None:
        self._result = result
        self._show()

    def _show(self) -> None:
        view = self.make_view()
        if view is not None:
            self.display.show(view)

    def _show_line(self, node: int, text: str) -> None:
        line = parse_line(self.layout.get_node_name(node), text)
        if line.rank is not None:
            self._last_lines[line.rank] = line.text
        if self.options.shows_logs and should_show(line, self.options.ranks):
            self.display.show_line(line)

    def _show_stopping(self, request: StopRequest) -> None:
        if request.grace_seconds > 0:
            self._notice = f"stopping after {request.cause} (Ctrl-C again to kill at once)"
        else:
            self._notice = f"killing after {request.cause}"
        self.display.show_note(self._notice)
        self._show()


def finish_run(run: DisplayedRun, job: Job, result: ReconcileResult[JobFacts]) -> int:
    """Show the summary, and write the resource to the run's folder and, if requested, to standard output."""
    options, layout = run.options, run.layout
    run.remove_notice()
    run.write_frame()
    run.display.close(run.make_view())
    layout.resource.write_text(format_resource(job, result.status, "yaml"), encoding="utf-8")
    for line in summarize_run(result.status, result.facts, layout, Path.cwd()):
        run.display.show_note(line)
    _print_job(job, result.status, options.output)
    return _choose_exit_code(run.signals, result.status)


def _print_job(job: Job, status: Status, output: TextFormat | None) -> None:
    if output == "wide":
        print_rows([read_row(serialise_resource(job, status))], has_namespaces=False, is_wide=True)
    elif output is not None:
        sys.stdout.write(format_resource(job, status, output))


def _choose_exit_code(signals: StopSignals | None, status: Status) -> int:
    if is_complete(status):
        return 0
    stopped = signals.exit_code if signals is not None else None
    return FAILED if stopped is None else stopped
