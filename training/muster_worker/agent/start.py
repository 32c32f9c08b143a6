"""`agent.pyz node`: reads the options and the plan, inspects the machine, and runs the node."""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import sys
from dataclasses import replace
from typing import List, Optional, Sequence, Tuple

from muster_worker.agent.collector_client import CollectorClient, TrustedAuthorities
from muster_worker.agent.exchange import CommandPoller, Inbox, NodeCutOff, Reporter
from muster_worker.agent.fork_server import start_fork_server
from muster_worker.agent.guardian import run_guarded
from muster_worker.agent.log import Log
from muster_worker.agent.node import NodeAgent
from muster_worker.agent.node_options import NodeOptions
from muster_worker.agent.peer_pings import PeerPings
from muster_worker.agent.peers import set_interface
from muster_worker.agent.state import NodeState
from muster_worker.agent.unpacked_archive import unpack
from muster_worker.contract import wire
from muster_worker.contract.schema import VERSION, AgentProblem, Plan
from muster_worker.launchers.base import Launcher
from muster_worker.launchers.environment import ARCHIVE_SUFFIX, NodeContext
from muster_worker.launchers.registry import find_launcher
from muster_worker.machine import devices, memory_lock, memory_reading, processes
from muster_worker.mpi.mca_files import read_mca_names
from muster_worker.network import interfaces
from muster_worker.network.hosts import mount_hosts
from muster_worker.network.interface_choice import NoInterface, choose_interface
from muster_worker.network.library_interfaces import Network
from muster_worker.network.port import hold_port
from muster_worker.sagemaker import container, opt_ml

USAGE_EXIT_CODE = 64
"""sysexits.h, EX_USAGE: the options or the plan are unusable."""

STANDARD_OUTPUT = 1

TERMINATION_GRACE_SECONDS = 25.0
"""Kubernetes kills a pod after 30 s by default. The remaining 5 s are for the last report."""


def main(arguments: Sequence[str]) -> int:
    """Run the agent and return its exit code. No process of the node remains."""
    options = _build_parser().parse_args(arguments)
    try:
        plan = _read_plan(options.plan)
    except (OSError, wire.MalformedDocument, ValueError) as error:
        sys.stderr.write(f"[muster] the plan {options.plan} can't be used: {error}\n")
        return USAGE_EXIT_CODE
    # Load the launcher's module now: a newer operator may replace the archive of modules while the agent runs.
    return run_guarded(lambda: _run_agent(options, plan, find_launcher(plan.launcher)))


def _run_agent(options: argparse.Namespace, plan: Plan, launcher: Launcher) -> int:
    processes.adopt_orphans()
    # Mount before any thread starts: only a single-threaded process can enter a user namespace.
    name = container.build_host_names(plan.nodes)[options.node]
    hosts_problem = None if options.hosts is None else mount_hosts(os.path.abspath(options.hosts), name)
    log = Log(STANDARD_OUTPUT)
    if hosts_problem is not None:
        names = ", ".join(container.build_host_names(plan.nodes))
        log.print_line(f"{names} resolve in Python ranks only: {hosts_problem}")
    limit = memory_lock.raise_limit()
    state, port_sockets = _choose_address(NodeState(plan.job_uid, options.node, options.replacement), plan, log)
    state = replace(state, network_warning=memory_lock.find_warning(limit, has_verbs=interfaces.has_verbs()))
    if state.network_warning is not None:
        log.print_line(state.network_warning)
    if hosts_problem is not None and plan.nodes > 1 and launcher.needs_own_hosts:
        reason = f"MPI treats this machine as a single node: {hosts_problem}; use `nodes: 1`, or run as root"
        state = replace(state, problem=AgentProblem("NodesNotApart", reason))
    host = container.Host(
        cpus=devices.count_cpus(),
        gpus=devices.count_gpus(),
        instance_type=os.environ.get("SM_CURRENT_INSTANCE_TYPE", "local"),
        interface=state.interface or "",
        directory=os.getcwd(),
        memory_unreadable=memory_reading.is_forbidden(),
    )
    context = _build_context(options, plan, state, host)
    if state.problem is None:
        state = _prepare_folders(state, context)
    context = _add_fork_server(context, state, log)
    if state.problem is not None:
        log.print_line(state.problem.message)
    inbox = Inbox()
    state, pings, reporter = _start_communication(options, plan, state, inbox, log)
    node_options = _build_node_options(options, context, port_sockets, pings)
    try:
        return NodeAgent(node_options, state, reporter, inbox, log).run()
    finally:
        for port_socket in port_sockets:
            port_socket.close()


def _start_communication(
    options: argparse.Namespace, plan: Plan, state: NodeState, inbox: Inbox, log: Log
) -> Tuple[NodeState, PeerPings, Reporter]:
    """Start the threads for the collector and for the peers. Returns the state with the port for the peers."""
    clients = (_build_client(plan, options), _build_client(plan, options))
    pings = PeerPings(
        state.node,
        plan.fence_seconds,
        lambda: max(client.answered_at for client in clients),
        lambda reason: inbox.put(NodeCutOff(reason)),
        log.print_line,
    )
    CommandPoller(clients[1], inbox)
    state = replace(state, ping_port=pings.port, fence_seconds=plan.fence_seconds)
    return state, pings, Reporter(clients[0], inbox)


def _add_fork_server(context: NodeContext, state: NodeState, log: Log) -> NodeContext:
    if state.problem is not None:
        return context
    try:
        fork_server = start_fork_server(context, os.environ, log)
    except OSError as error:
        log.print_line(f"ranks start without a fork server: {error}")
        return context
    return replace(context, fork_server=fork_server)


def _build_node_options(
    options: argparse.Namespace, context: NodeContext, port_sockets: List[socket.socket], pings: PeerPings
) -> NodeOptions:
    return NodeOptions(
        context,
        pings,
        max(0.0, options.grace_seconds),
        options.termination_log,
        options.lifeline,
        port_sockets[0] if port_sockets else None,
        options.sync,
    )


def _choose_address(state: NodeState, plan: Plan, log: Log) -> Tuple[NodeState, List[socket.socket]]:
    """Choose the node's interface and hold its ports, the rendezvous port first. On failure the state has a problem."""
    all_interfaces = interfaces.list_interfaces()
    choice = choose_interface(
        plan.interface, all_interfaces, interfaces.find_route_interface(plan.collector_url, all_interfaces)
    )
    if isinstance(choice, NoInterface):
        return replace(state, problem=AgentProblem("NoInterface", choice.problem)), []
    log.print_line(f"interface {choice.name} ({choice.address}): {choice.reason}")
    port_sockets: List[socket.socket] = []
    try:
        port_sockets.extend(hold_port() for _ in range(2 if plan.network_check else 1))
    except OSError as error:
        message = f"no free port: {error}"
        return replace(state, problem=AgentProblem("NoPort", message)), port_sockets
    ports = [port_socket.getsockname()[1] for port_socket in port_sockets]
    state = replace(state, port=ports[0], check_port=ports[1] if plan.network_check else None)
    return set_interface(state, choice), port_sockets


def _prepare_folders(state: NodeState, context: NodeContext) -> NodeState:
    try:
        opt_ml.prepare(context.root, context.plan, context.node, context.host)
    except OSError as error:
        return replace(state, problem=AgentProblem("RootUnusable", f"{context.root} can't be prepared: {error}"))
    for metric in context.plan.metrics:
        try:
            re.compile(metric.regex)
        except re.error as error:
            message = f"spec.metrics: {metric.name}: {metric.regex!r} is not a valid expression: {error}"
            return replace(state, problem=AgentProblem("BadMetric", message))
    return state


def _build_context(options: argparse.Namespace, plan: Plan, state: NodeState, host: container.Host) -> NodeContext:
    run_dir = os.path.abspath(options.run)
    return NodeContext(
        plan=plan,
        node=options.node,
        peers=(),
        network=Network(host.interface, state.address or "", interfaces.has_verbs(), read_mca_names(os.environ)),
        host=host,
        root=os.path.abspath(options.root),
        run_dir=run_dir,
        socket_path=os.path.join(run_dir, "0.sock"),
        archive=_unpack_archive(run_dir),
        python=sys.executable,
    )


def _unpack_archive(run_dir: str) -> str:
    """Unpack this agent's archive, which an upgraded operator may replace, for its ranks. Returns the folder."""
    archive, folder = os.path.abspath(sys.argv[0]), os.path.join(run_dir, "agent")
    if not archive.endswith(ARCHIVE_SUFFIX):
        return os.path.dirname(archive)  # `muster run` has written the folder for all its agents
    try:
        unpack(archive, folder)
    except OSError:
        return archive  # the start of the ranks reports the problem with the folder
    return folder


def _build_client(plan: Plan, options: argparse.Namespace) -> CollectorClient:
    path = os.path.abspath(options.plan)
    trust = TrustedAuthorities(plan.collector_ca, lambda: _read_authority(path))
    return CollectorClient(plan.collector_url, trust, os.path.abspath(options.token))


def _read_authority(path: str) -> Optional[str]:
    """Return the certificate authority in the current plan. It is the only field that the agent reads again."""
    try:
        with open(path, "rb") as file:
            plan = json.load(file)
    except (OSError, ValueError):
        return None
    # Don't decode a `Plan`: a newer operator's plan may have more fields.
    result = plan.get("collector_ca") if isinstance(plan, dict) else None
    return result if isinstance(result, str) else None


def _read_plan(path: str) -> Plan:
    with open(path, "rb") as file:
        plan = wire.decode(Plan, file.read())
    if plan.version != VERSION:
        raise ValueError(f"it has version {plan.version}, this agent understands {VERSION}")
    return plan


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agent.pyz node", description="The agent of one node of a training job.")
    parser.add_argument("--plan", required=True, metavar="FILE", help="the job's plan")
    parser.add_argument("--node", required=True, type=int, metavar="I", help="this node's index")
    parser.add_argument(
        "--replacement", required=True, type=int, metavar="G", help="the replacement number of this node's pod"
    )
    parser.add_argument("--token", required=True, metavar="FILE", help="the token for the collector")
    parser.add_argument("--root", required=True, metavar="DIR", help="the folder that is /opt/ml on a cluster")
    parser.add_argument("--run", required=True, metavar="DIR", help="a private folder for sockets and progress")
    parser.add_argument(
        "--grace-seconds",
        type=float,
        default=TERMINATION_GRACE_SECONDS,
        metavar="S",
        help="grace period of the ranks after SIGTERM to this agent",
    )
    parser.add_argument("--hosts", metavar="FILE", help="a hosts file for the ranks")
    parser.add_argument("--lifeline", type=int, metavar="FD", help="a pipe that closes when the parent exits")
    parser.add_argument("--sync", metavar="SOCKET", help="socket of the process that syncs files with S3")
    parser.add_argument("--termination-log", metavar="FILE", help="the file for a summary")
    return parser
