"""Run the agents of a local run as processes: start them, read their output, observe their end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from muster.backends.local.log_tail import LineReader, LogTail
from muster.backends.local.process_tree import kill_tree
from muster.core.facts import ProcessFacts, ProcessState

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
    """The agents by node. `reader` gets the lines of their output; `on_change` is called when an agent ends."""

    clock: Clock
    reader: LineReader
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
        with start.log.open("ab") as log:
            tail = LogTail(start.node, start.log, self.reader)
            process = await asyncio.create_subprocess_exec(
                *(argument.replace("{lifeline}", str(lifeline)) for argument in start.arguments),
                env=dict(start.environment),
                cwd=start.folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lifeline,),
                start_new_session=True,  # muster handles Ctrl-C, not the ranks
            )
        running = _RunningAgent(start.replacement, process, self.clock())
        running.watcher = asyncio.create_task(self._watch(running, tail), name=f"agent of node {start.node}")
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

    async def _watch(self, running_agent: _RunningAgent, tail: LogTail) -> None:
        has_ended = asyncio.Event()
        reading = asyncio.create_task(tail.follow(has_ended))
        try:
            await running_agent.process.wait()
            has_ended.set()
            # Report the end only after the last output, which the status of a training job quotes.
            await reading
        finally:
            running_agent.ended_at = self.clock()
            self.on_change()
