"""The agents of a local run as processes of this machine: start, output, end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self

from muster.backends.local.tree import kill_tree
from muster.core.facts import ProcessFacts, ProcessState

MAX_LINE_BYTES = 64 * 1024
"""A longer line is passed on in pieces, so that a run's memory stays small whatever its ranks print."""

_CHUNK = 64 * 1024
_DRAIN_SECONDS = 2.0
"""How long output may still come after an agent ended; a process that kept its pipe open must not hold the run."""

OnLine = Callable[[int, str], None]
OnChange = Callable[[], None]
Clock = Callable[[], float]


@dataclass(frozen=True)
class AgentStart:
    """What an agent is started with; `arguments` follow the interpreter and may name the lifeline by `{lifeline}`.

    `folder` is where it runs, None: where muster does.
    """

    node: int
    replacement: int
    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    folder: Path | None = None


@dataclass
class _Running:
    replacement: int
    process: asyncio.subprocess.Process
    started_at: float
    watcher: asyncio.Task[None] | None = None
    ended_at: float | None = None


@dataclass
class AgentProcesses:
    """The agents by node. `on_line` hears each line of their output, `on_change` when one ended."""

    clock: Clock
    on_line: OnLine
    on_change: OnChange
    _running: dict[int, _Running] = field(default_factory=dict)
    _lifeline: tuple[int, int] = field(default_factory=os.pipe)

    async def start(self, start: AgentStart) -> None:
        """Start the node's agent in its own session, unless this replacement of it was already. Raises `OSError`."""
        entry = self._running.get(start.node)
        if entry is not None and entry.replacement >= start.replacement:
            return
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            # if muster was started with it ignored, the kernel reports no child's end
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        lifeline, _ = self._lifeline
        process = await asyncio.create_subprocess_exec(
            *(argument.replace("{lifeline}", str(lifeline)) for argument in start.arguments),
            env=dict(start.environment),
            cwd=start.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(lifeline,),
            start_new_session=True,  # Ctrl-C at the terminal is muster's to hear, not the ranks'
        )
        running = _Running(start.replacement, process, self.clock())
        running.watcher = asyncio.create_task(self._watch(start, running), name=f"agent of node {start.node}")
        self._running[start.node] = running

    def facts(self, node: int) -> ProcessFacts:
        """What is known of the node's agent process."""
        running = self._running.get(node)
        if running is None:
            return ProcessFacts(ProcessState.MISSING, replacement=-1)
        if running.ended_at is None:
            return ProcessFacts(ProcessState.RUNNING, running.replacement, started_at=running.started_at)
        code = running.process.returncode or 0
        return ProcessFacts(
            ProcessState.EXITED,
            running.replacement,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            started_at=running.started_at,
            ended_at=running.ended_at,
        )

    def kill(self, node: int) -> None:
        """SIGKILL the node's agent and everything below it. A node without a process is left as it is."""
        running = self._running.get(node)
        if running is not None and running.process.returncode is None:
            kill_tree(running.process.pid)

    def terminate(self, node: int) -> None:
        """SIGTERM to the node's process. A node without one is left as it is."""
        running = self._running.get(node)
        if running is not None and running.process.returncode is None:
            running.process.terminate()

    async def close(self) -> None:
        """End whatever still runs and wait until it is gone."""
        for node in self._running:
            self.kill(node)
        await asyncio.gather(*(running.watcher for running in self._running.values() if running.watcher is not None))
        for descriptor in self._lifeline:
            os.close(descriptor)

    async def _watch(self, start: AgentStart, running: _Running) -> None:
        output = asyncio.create_task(self._copy_output(start, running))
        await running.process.wait()
        # the end counts once its last words are in: they belong to the story that is told about it
        await asyncio.wait({output}, timeout=_DRAIN_SECONDS)
        output.cancel()
        with suppress(asyncio.CancelledError):
            await output
        running.ended_at = self.clock()
        self.on_change()

    async def _copy_output(self, start: AgentStart, running: _Running) -> None:
        output, lines = running.process.stdout, AgentLineReader()
        if output is None:
            raise AssertionError("started with its output as a pipe")
        with _Log(start.log) as log:
            while data := await output.read(_CHUNK):
                problem = log.write(data)
                for line in (*lines.feed(data), *problem):
                    self.on_line(start.node, line)
        for line in lines.close():
            self.on_line(start.node, line)


class _Log:
    """A node's log file. A full disk ends the log, never the job; it is said once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._given_up = False

    def __enter__(self) -> Self:
        return self

    def write(self, data: bytes) -> tuple[str, ...]:
        """Append `data`; what went wrong, as a line for people."""
        if self._given_up:
            return ()
        try:
            self._file = self._file or self._path.open("ab", buffering=0)
            self._file.write(data)
        except OSError as error:
            self._given_up = True
            return (f"[muster] {self._path} is no longer written: {error.strerror}",)
        return ()

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


class AgentLineReader:
    """Collects bytes and gives back whole lines as text; what isn't UTF-8 becomes U+FFFD.

    That is all: what ranks wrote the agent has made readable already (`muster_worker.rank_group.lines`).
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes, without their ends."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            whole.append(self._rest)
            self._rest = b""
        return [line.decode("utf-8", "replace") for line in whole]

    def close(self) -> list[str]:
        """The last line, when it has no end."""
        rest, self._rest = self._rest, b""
        return [rest.decode("utf-8", "replace")] if rest else []
