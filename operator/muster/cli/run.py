"""`muster run`: a job on this machine, from its file to its last sentence."""

from __future__ import annotations

import asyncio
import os
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Protocol, cast

from rich.console import Console

from muster.api.spec import Job
from muster.api.status import Status
from muster.backends.local.devices import machine_gpus, with_procs
from muster.backends.local.environment import MissingVariable, PythonHome, inherit, with_python, with_variables
from muster.backends.local.folder_lock import FolderInUse, own_folder
from muster.backends.local.folders import MissingFolder, find_folders
from muster.backends.local.layout import RunLayout, run_folder
from muster.backends.local.processes import OnLine
from muster.backends.local.scratch import Scratch
from muster.backends.local.session import Machine, open_session
from muster.backends.local.storage import bring_here, fetched_folders, keeper, local_plan, without_fetched
from muster.cli.cluster_fields import cluster_notes
from muster.cli.display import Display, display_on
from muster.cli.ending import ending, is_complete
from muster.cli.job_file import read_job
from muster.cli.options import RunOptions, check_ranks
from muster.cli.problem import BadInput, system_problem
from muster.cli.rank_lines import is_wanted, read_line
from muster.cli.resource import resource_text
from muster.cli.standard_error import StandardError
from muster.cli.stop import Stop, StopSignals
from muster.cli.view import View
from muster.plan.world import procs_per_node, world_size
from muster.runtime.local_run import LocalRun, Session
from muster.runtime.reconcile import Turn
from muster.runtime.steady_clock import steady_clock
from muster.storage.trouble import StorageTrouble

FAILED = 1


class Opener(Protocol):
    """Opens what a run runs on; on leaving, it ends every process that is left."""

    def __call__(self, *, on_line: OnLine, clock: Callable[[], float]) -> AbstractAsyncContextManager[Session]:
        """`on_line` hears each line of a node's output, `clock` gives Unix seconds."""
        ...


_TICK_SECONDS = 0.5
SCRATCH = Path("/tmp")  # noqa: S108 - sockets' paths are short, mpirun splits some at spaces; mkdtemp is private


def run_job(options: RunOptions) -> int:
    """Run the job and show it; the exit code. Raises `BadInput` before anything was started."""
    written = read_job(options.file)
    if written.spec.backend == "SageMaker":
        raise BadInput(f"{options.file}: a job of backend SageMaker runs on this machine with --local")
    job = with_uid(written)
    gpus = machine_gpus(os.environ, Path("/dev"))
    try:
        resolved = kept_here(resolved_job(job, len(gpus)), options)
        check_ranks(options.ranks, world_size(resolved))
        plan = local_plan(resolved, options.inputs)
        folders = find_folders(without_fetched(job, plan), options.inputs, options.checkpoint)
    except (MissingFolder, MissingVariable) as error:
        raise BadInput(str(error)) from None
    display = new_display()
    for note in cluster_notes(job, options):
        display.note(note)

    def work() -> int:
        folder = folder_of(options, job)
        with own_folder(folder), Scratch(SCRATCH) as scratch:
            layout = RunLayout(folder, scratch.folder, job.metadata.name)
            run = Run(resolved, layout, display, options)
            machine = machine_of(display, gpus)
            if plan is not None:
                bring_here(plan, layout, display.note)
            brought = replace(folders, fetched=fetched_folders(plan, layout))
            opener = partial(open_session, resolved, layout, machine=machine, folders=brought)
            with keeper(plan, layout, display.note):
                turn = asyncio.run(run.run(opener))
        return finish(run, job, turn)

    return told(display, work)


def new_display() -> Display:
    """Where a run is shown: on standard error."""
    return display_on(Console(file=cast(IO[str], StandardError(sys.stderr)), highlight=False))


def told(display: Display, work: Callable[[], int]) -> int:
    """The exit code that `work` returns, or that of what kept it from its work, which is said. Raises `BadInput`."""
    try:
        return work()
    except FolderInUse as error:
        raise BadInput(f"{error}; choose another with --dir") from None
    except StorageTrouble as trouble:
        problem = f"{trouble.reason}: {trouble.message}"
    except OSError as error:
        # a folder that can't be made, a full disk, no more processes: nothing of it is a mistake in muster
        problem = system_problem(error)
    display.close(None)
    display.note(f"muster: {problem}")
    return FAILED


def with_uid(job: Job) -> Job:
    """The job as a resource of its own."""
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"uid": str(uuid.uuid4())})})


def resolved_job(job: Job, gpus: int) -> Job:
    """The job as it runs here, with nothing left open. Raises `MissingVariable`."""
    running = job.model_copy(update={"spec": job.spec.model_copy(update={"suspend": False})})
    return with_variables(with_procs(running, gpus), os.environ)


def kept_here(job: Job, options: RunOptions) -> Job:
    """The job without the places elsewhere for what the user wants to have on this machine."""
    checkpoint, output = job.spec.checkpoint, job.spec.output
    if options.keeps_here and checkpoint is not None:
        checkpoint = checkpoint.model_copy(update={"s3": None})
    if options.keeps_here and output is not None:
        output = output.model_copy(update={"s3": None})
    if options.checkpoint is not None:
        checkpoint = None
    places = {"checkpoint": checkpoint, "output": output}
    return job.model_copy(update={"spec": job.spec.model_copy(update=places)})


def folder_of(options: RunOptions, job: Job) -> Path:
    """The run's folder."""
    folder = options.folder or run_folder(Path.cwd(), job.metadata.name, job.metadata.uid)
    return folder.expanduser().absolute()


def machine_of(display: Display, gpus: tuple[str, ...]) -> Machine:
    """The user's environment as the ranks get it; says what was changed."""
    inherited = inherit(os.environ)
    if inherited.dropped:
        display.note(f"not passed on to the ranks, another run's: {', '.join(inherited.dropped)}")
    home = PythonHome(sysconfig.get_path("scripts"), sys.prefix != sys.base_prefix, find_spec("torch") is not None)
    environment = with_python(inherited.variables, home)
    if environment is not None:
        display.note(f"no environment is activated: python means {home.bin}/python")
    cores = len(os.sched_getaffinity(0))
    return Machine(environment or inherited.variables, gpus, cores, _machine_hosts())


def _machine_hosts() -> str:
    try:
        return Path("/etc/hosts").read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ""


@dataclass
class Run:
    """What changes while a run goes on, and who is told."""

    job: Job
    layout: RunLayout
    display: Display
    options: RunOptions
    signals: StopSignals | None = None
    _turn: Turn | None = None
    _started_at: float = field(default_factory=time.monotonic)
    _last_lines: dict[int, str] = field(default_factory=dict)
    _notice: str = ""

    async def run(self, opener: Opener) -> Turn:
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
        if self._turn is None:
            return None
        elapsed = time.monotonic() - self._started_at
        return View(
            name=self.job.metadata.name,
            procs_per_node=procs_per_node(self.job),
            status=self._turn.status,
            elapsed=elapsed,
            facts=self._turn.facts,
            last_lines=self._last_lines,
            notice=self._notice,
        )

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._show()

    def _publish(self, turn: Turn) -> None:
        self._turn = turn
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


def finish(run: Run, job: Job, turn: Turn) -> int:
    """Say how it ended, leave the resource in the run's folder and, when asked for, on standard output."""
    options, layout = run.options, run.layout
    run.end_notice()
    run.display.close(run.view())
    layout.resource.write_text(resource_text(job, turn.status, "yaml"), encoding="utf-8")
    for line in ending(turn.status, turn.facts, layout, Path.cwd()):
        run.display.note(line)
    if options.output is not None:
        sys.stdout.write(resource_text(job, turn.status, options.output))
    return _exit_code(run.signals, turn.status)


def _exit_code(signals: StopSignals | None, status: Status) -> int:
    if is_complete(status):
        return 0
    stopped = signals.exit_code if signals is not None else None
    return FAILED if stopped is None else stopped
