"""Runs a job's agents as real processes, and the collector that they report to, for tests."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from fakes.agent_collector import FakeCollector
from muster.backends.local.hosts import render_hosts_file
from muster.collector.trust.attempt_credentials import SEED_BYTES, derive_credentials, derive_ping_key
from muster.core.facts import AgentFacts, NodeFacts, ProcessFacts, ProcessState
from muster.core.membership.peers import select_peers
from muster.core.reports.merge import merge_report
from muster.render.agent_archive import build_agent_archive
from muster_worker.contract import schema, wire
from muster_worker.contract.mpi import Mpi
from muster_worker.contract.schema import (
    AgentPhase,
    Channel,
    Command,
    CommandKind,
    Launcher,
    Metric,
    Peer,
    Plan,
    Report,
    Scalar,
)
from muster_worker.contract.source import EditedSource
from support.agent_folder import share_agent_folder
from support.forked_process import ForkedProcess

JOB = "7a1f0000-0000-4000-8000-000000000001"
PATIENCE = 60.0


class AgentWorld:
    """One job. All folders except the run folders are below `folder`: the path of a Unix socket must be short.

    `address` is the collector's address. `within` has, by node, a command prefix that runs a command in the node's
    environment. A server forks the agents unless `is_forked` is False: a Python of their own takes ten times as long.
    """

    def __init__(self, folder: Path, address: str = "127.0.0.1") -> None:
        self.folder = folder
        self.short = Path(tempfile.mkdtemp(prefix="muster-test-"))
        self.collector = FakeCollector(address)
        self.within: dict[int, tuple[str, ...]] = {}
        self.program = share_agent_folder() / "__main__.py"
        self.is_forked = True
        self.agents: dict[int, subprocess.Popen[bytes]] = {}
        self.python = sys.executable
        self.plan: Plan | None = None
        self.seed = secrets.token_bytes(SEED_BYTES)

    def __enter__(self) -> Self:
        self.collector.start()
        return self

    def __exit__(self, *error: object) -> None:
        for agent in self.agents.values():
            if agent.poll() is None:
                agent.kill()
            agent.wait()
        self.collector.close()
        shutil.rmtree(self.short, ignore_errors=True)

    def pack(self) -> Path:
        """Start the agents as pods do: from the archive. Return its path."""
        self.program = self.short / "agent.pyz"
        self.program.write_bytes(build_agent_archive())
        self.is_forked = False
        return self.program

    def make_plan(
        self,
        *command: str,
        launcher: str = schema.Launcher.DIRECT,
        nodes: int = 1,
        procs: int = 1,
        hyperparameters: Mapping[str, Scalar] | None = None,
        metrics: tuple[Metric, ...] = (),
        channels: tuple[Channel, ...] = (),
        launcher_args: tuple[str, ...] = (),
        mpi: str = Mpi.AUTO,
        interface: str = "Auto",
        network_check: bool = False,
        fence_seconds: float = 0.0,
    ) -> Plan:
        """Return the plan of the job whose agents `start` starts."""
        self.plan = Plan(
            version=schema.VERSION,
            namespace="default",
            job="digits",
            job_uid=JOB,
            nodes=nodes,
            procs_per_node=procs,
            launcher=launcher,
            launcher_args=launcher_args,
            command=command,
            hyperparameters=hyperparameters or {},
            channels=channels,
            metrics=metrics,
            interface=interface,
            collector_url=self.collector.url,
            collector_ca=self.collector.authority,
            mpi=mpi,
            network_check=network_check,
            fence_seconds=fence_seconds,
        )
        return self.plan

    def write_script(self, text: str, name: str = "train.py") -> str:
        """Write a script; return its path."""
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def start_agent(
        self,
        node: int = 0,
        environment: Mapping[str, str] | None = None,
        lifeline: int | None = None,
        hosts: Path | None = None,
        options: tuple[str, ...] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a node's agent."""
        assert self.plan is not None
        home = self.short / str(node)
        home.mkdir(mode=0o700, exist_ok=True)
        self.write_plan(node, self.plan)
        (home / "token").write_text(f"token-{node}\n")
        command = [self.python, "-I", str(self.program)]
        arguments = [
            *("node", "--plan", str(home / "plan.json"), "--node", str(node), "--replacement", "1"),
            *("--token", str(home / "token"), "--root", str(self.get_root(node)), "--run", str(home)),
            *("--termination-log", str(self.get_termination_log(node)), *options),
        ]
        if lifeline is not None:
            arguments += ["--lifeline", str(lifeline)]
        if hosts is not None:
            arguments += ["--hosts", str(hosts)]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, **(environment or {})}
        prefix = self.within.get(node, ())
        with self.log_path(node).open("wb") as log:
            if self.is_forked and lifeline is None and not prefix:
                self.agents[node] = ForkedProcess(
                    [str(self.program), *arguments],
                    self.program.parent,
                    env=env,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            else:
                self.agents[node] = subprocess.Popen(
                    [*prefix, *command, *arguments],
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                    start_new_session=True,
                    pass_fds=() if lifeline is None else (lifeline,),
                )
        return self.agents[node]

    def write_plan(self, node: int, plan: Plan) -> None:
        """Write a plan to the path from which the node's agent reads it."""
        path = self.short / str(node) / "plan.json"
        path.with_suffix(".new").write_bytes(wire.encode(plan))
        path.with_suffix(".new").replace(path)

    def launch(self, attempt: int = 1, environment: Mapping[str, str] | None = None) -> None:
        """Start all agents and, when all are ready, their ranks. Nodes of an MPI job have their own host names."""
        assert self.plan is not None
        hosts = self._get_hosts_file() if self.plan.launcher == Launcher.MPI else None
        for node in range(self.plan.nodes):
            self.start_agent(node, environment, hosts=hosts)
        for node in range(self.plan.nodes):
            self.wait(node, lambda report: report.phase == AgentPhase.READY)
        self.send(CommandKind.START, attempt)

    def send(
        self,
        kind: str,
        attempt: int = 1,
        grace: float = 0.0,
        leader_term: int = 1,
        nodes: Sequence[int] | None = None,
        source: EditedSource | None = None,
    ) -> None:
        """Send a command to the agents of these nodes; None: to all."""
        assert self.plan is not None
        peers: tuple[Peer, ...] = ()
        if kind == CommandKind.START:
            reports = [self.wait(node, lambda report: report.port is not None) for node in range(self.plan.nodes)]
            peers = select_peers(make_facts(reports))
        is_called = kind == CommandKind.START and self.plan.launcher == Launcher.MPI
        credentials = derive_credentials(self.seed, JOB, attempt) if is_called else None
        is_asked = kind == CommandKind.START and self.plan.fence_seconds
        key = derive_ping_key(self.seed, JOB, attempt) if is_asked else None
        for node in range(self.plan.nodes) if nodes is None else nodes:
            command = Command(leader_term, JOB, attempt, kind, peers, grace, credentials, ping_key=key, source=source)
            self.collector.set_command(node, command)

    def wait(self, node: int, condition: Callable[[Report], bool], patience: float = PATIENCE) -> Report:
        """Return the first report of a node that meets `condition`, starting with the newest one so far."""
        return self.collector.wait(node, condition, patience, lambda: self.log(node))

    def wait_said(self, node: int, text: str, times: int) -> None:
        """Wait until a node's ranks have printed a text this many times."""
        self.wait(node, lambda _: self.log(node).count(text) >= times)

    def wait_ended(self, node: int = 0, patience: float = PATIENCE) -> Report:
        """Wait for the report that no process of the attempt exists on a node."""
        return self.wait(node, lambda report: report.phase == AgentPhase.ENDED, patience)

    def get_facts(self) -> tuple[NodeFacts, ...]:
        """Return the operator's facts after the reports of all nodes."""
        return tuple(make_node_facts(node, self._merge_reports(node)) for node in sorted(self.collector.reports))

    def _merge_reports(self, node: int) -> AgentFacts:
        (at, first), *others = self.collector.reports[node]
        facts = merge_report(None, first, at)
        for at, report in others:
            facts = merge_report(facts, report, at)
        return facts

    def leave(self, node: int = 0) -> int:
        """Send Exit to all agents, and wait until their logs are complete; return the exit code of one."""
        self.send(CommandKind.EXIT, 99)
        exit_codes = {number: agent.wait(timeout=PATIENCE) for number, agent in self.agents.items()}
        return exit_codes[node]

    def log(self, node: int = 0) -> str:
        """Return the agent's log so far. Its last lines may follow the report of what they are about."""
        return self.log_path(node).read_text()

    def _get_hosts_file(self) -> Path:
        assert self.plan is not None
        path = self.short / "hosts"
        path.write_text(render_hosts_file(JOB, self.plan.job, self.plan.nodes, "127.0.0.1 localhost\n"))
        return path

    def log_path(self, node: int) -> Path:
        return self.folder / f"node-{node}.log"

    def get_root(self, node: int) -> Path:
        return self.folder / f"root-{node}"

    def get_termination_log(self, node: int) -> Path:
        return self.folder / f"termination-{node}.json"


def make_facts(reports: Sequence[Report]) -> tuple[NodeFacts, ...]:
    """Return the operator's facts about nodes with these reports."""
    return tuple(make_node_facts(report.node, AgentFacts(report, 0.0)) for report in reports)


def make_node_facts(node: int, agent: AgentFacts) -> NodeFacts:
    """Return the operator's facts about a node with this agent."""
    return NodeFacts(node, f"digits-{node}", ProcessFacts(ProcessState.RUNNING), agent)


def terminate(agent: subprocess.Popen[bytes]) -> None:
    """Terminate the agent as Kubernetes terminates a pod."""
    agent.send_signal(signal.SIGTERM)
