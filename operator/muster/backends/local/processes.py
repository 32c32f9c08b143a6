"""Run the agents of a local run as processes: start them, copy their output, observe their end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self

from muster.backends.local.process_tree import kill_tree
from muster.core.facts import ProcessFacts, ProcessState

MAX_LINE_BYTES = 64 * 1024
"""Longer lines are split, to limit the memory."""

_CHUNK_BYTES = 64 * 1024
_DRAIN_SECONDS = 2.0
"""Read output at most this long after an agent's end: another process may keep its pipe open."""

OnLine = Callable[[int, str], None]
OnChange = Callable[[], None]
Clock = Callable[[], float]


@dataclass(frozen=True)
class AgentStart:
    """The command of an agent. `{lifeline}` in `arguments` stands for the lifeline's descriptor.

    `folder` is the working directory; None: muster's own.
    """

    node: int
    replacement: int
    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    folder: Path | None = None


@dataclass
class _RunningAgent:
    replacement: int
    process: asyncio.subprocess.Process
    started_at: float
    watcher: asyncio.Task[None] | None = None
    ended_at: float | None = None


@dataclass
class AgentProcesses:
    """The agents by node. `on_line` gets each line of their output; `on_change` is called when an agent ends."""

    clock: Clock
    on_line: OnLine
    on_change: OnChange
    _running_agents: dict[int, _RunningAgent] = field(default_factory=dict)
    _lifeline: tuple[int, int] = field(default_factory=os.pipe)

    async def start(self, start: AgentStart) -> None:
        """Start the node's agent in its own session, unless this process already runs. Raises `OSError`."""
        entry = self._running_agents.get(start.node)
        if entry is not None and entry.replacement >= start.replacement:
            return
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            # muster may inherit an ignored SIGCHLD; then the kernel doesn't report the end of a child
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
            start_new_session=True,  # muster handles Ctrl-C, not the ranks
        )
        running = _RunningAgent(start.replacement, process, self.clock())
        running.watcher = asyncio.create_task(self._watch(start, running), name=f"agent of node {start.node}")
        self._running_agents[start.node] = running

    def get_facts(self, node: int) -> ProcessFacts:
        """Return the state of the node's agent process."""
        running = self._running_agents.get(node)
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
        """Send SIGKILL to the node's agent and all its descendants, if it runs."""
        running = self._running_agents.get(node)
        if running is not None and running.process.returncode is None:
            kill_tree(running.process.pid)

    def terminate(self, node: int) -> None:
        """Send SIGTERM to the node's agent, if it runs."""
        running = self._running_agents.get(node)
        if running is not None and running.process.returncode is None:
            running.process.terminate()

    async def close(self) -> None:
        """Kill all running agents, and wait until they have ended."""
        for node in self._running_agents:
            self.kill(node)
        await asyncio.gather(
            *(running.watcher for running in self._running_agents.values() if running.watcher is not None)
        )
        for descriptor in self._lifeline:
            os.close(descriptor)

    async def _watch(self, start: AgentStart, running_agent: _RunningAgent) -> None:
        output = asyncio.create_task(self._copy_output(start, running_agent))
        await running_agent.process.wait()
        # report the end only after the last output, which the status quotes
        await asyncio.wait({output}, timeout=_DRAIN_SECONDS)
        output.cancel()
        with suppress(asyncio.CancelledError):
            await output
        running_agent.ended_at = self.clock()
        self.on_change()

    async def _copy_output(self, start: AgentStart, running_agent: _RunningAgent) -> None:
        output, lines = running_agent.process.stdout, AgentLineReader()
        if output is None:
            raise AssertionError("started with its output as a pipe")
        with _Log(start.log) as log:
            while data := await output.read(_CHUNK_BYTES):
                problem = log.write(data)
                for line in (*lines.feed(data), *problem):
                    self.on_line(start.node, line)
        for line in lines.close():
            self.on_line(start.node, line)


class _Log:
    """A node's log file. If a write fails, as on a full disk, the log ends, but the job continues."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._has_failed = False

    def __enter__(self) -> Self:
        return self

    def write(self, data: bytes) -> tuple[str, ...]:
        """Append `data`; return an error message as a line, if any."""
        if self._has_failed:
            return ()
        try:
            self._file = self._file or self._path.open("ab", buffering=0)
            self._file.write(data)
        except OSError as error:
            self._has_failed = True
            return (f"[muster] {self._path} can no longer be written: {error.strerror}",)
        return ()

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


class AgentLineReader:
    """Splits bytes into lines of text; invalid UTF-8 becomes U+FFFD.

    The agent has already cleaned the ranks' output (`muster_worker.rank_group.lines`).
    """

    def __init__(self) -> None:
        self._partial_line = b""

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that `data` completes, without line ends."""
        *whole, self._partial_line = (self._partial_line + data).split(b"\n")
        if len(self._partial_line) > MAX_LINE_BYTES:
            whole.append(self._partial_line)
            self._partial_line = b""
        return [line.decode("utf-8", "replace") for line in whole]

    def close(self) -> list[str]:
        """Return the rest as the last line, if any."""
        rest, self._partial_line = self._partial_line, b""
        return [rest.decode("utf-8", "replace")] if rest else []
