"""Validate a report with an ordered list of checks. The first failed check names the field.

The sender is a pod with a user's code. The checks ensure that a false report affects only its own node. They limit its
ranks, times and sizes, and reject values that would harm other pods.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_interface

from muster.api.spec.failure_policy import MAX_FENCE_SECONDS
from muster.core.reports.check_rank_records import (
    find_collectives_problem,
    find_end_problem,
    find_error_problem,
    find_lines_problem,
)
from muster.core.reports.check_trainer_status import find_trainer_status_problem
from muster_worker.contract.network import MAX_LINKS
from muster_worker.contract.schema import MAX_METRICS, AgentPhase, RankReport, RankState, Report

CLOCK_TOLERANCE_SECONDS = 300.0
"""An event may seem this many seconds older than the job, because the API server's clock may differ."""

MAX_WORD_CHARS = 256
"""The limit for names, reasons and activities."""

MAX_PROBLEM_CHARS = 4096

MAX_INTERFACE_CHARS = 64
"""Linux allows 15 characters. The start command contains every node's interface name, for up to 10,000 nodes."""

MAX_FIGURE = 1e9
"""The limit for the network check's figures: a petabit a second, or a quarter of an hour."""

MAX_PORT = 65535


class ImplausibleReport(ValueError):
    """A report that can't be true for this job; the message names the field."""


@dataclass(frozen=True)
class JobShape:
    """Properties of a job that are known without reports.

    `created_at` is in Unix seconds. `namespace` is "" without a cluster. `has_fixed_ranks` is set if a node has the
    same ranks in every attempt. Otherwise a report may contain the ranks of any one node, and `complete_facts` drops
    ranks that are not the reporting node's. `agents` is the number of agents that may run. It is lower than `nodes` in
    an elastic job that may grow.
    """

    job_uid: str
    nodes: int
    procs_per_node: int
    created_at: float
    namespace: str = ""
    has_fixed_ranks: bool = True
    agents: int | None = None

    @property
    def agent_count(self) -> int:
        """The number of agents that may run."""
        return self.nodes if self.agents is None else self.agents

    def list_node_ranks(self, report: Report) -> range:
        """Return the global ranks of the node that sent the report.

        Without fixed ranks, the first rank in the report identifies the node.
        """
        ranks = [entry.rank for entries in (report.ranks, report.metrics) for entry in entries]
        node_rank = report.node if self.has_fixed_ranks or not ranks else ranks[0] // self.procs_per_node
        start = min(max(0, node_rank), self.nodes - 1) * self.procs_per_node
        return range(start, start + self.procs_per_node)


def check_report(report: Report, shape: JobShape, at: float) -> None:
    """Raise `ImplausibleReport` if `report`, received at `at` (Unix seconds), can't belong to a job of this shape."""
    for problem in (find_problem(report, shape, at) for find_problem in _CHECKS):
        if problem is not None:
            raise ImplausibleReport(problem)


def _check_node(report: Report, shape: JobShape, _: float) -> str | None:
    if not 0 <= report.node < shape.nodes:
        return f"node: the job has nodes 0 to {shape.nodes - 1}"
    return None


def _check_counters(report: Report, _: JobShape, __: float) -> str | None:
    for name in ("replacement", "attempt", "sequence", "dropped_lines"):
        if getattr(report, name) < 0:
            return f"{name}: below 0"
    if report.stop_call is not None and report.stop_call < 0:
        return "stop_call: below 0"
    return None


def _check_phase(report: Report, _: JobShape, __: float) -> str | None:
    return None if report.phase in AgentPhase.ALL else f"phase: expected one of {', '.join(AgentPhase.ALL)}"


def _check_address(report: Report, _: JobShape, __: float) -> str | None:
    # Other pods use the address in their environment and their command lines, so accept only an IP address.
    if report.address is not None:
        try:
            address = ip_address(report.address)
        except ValueError:
            return "address: not an IP address"
        if "%" in report.address or address.is_multicast or address.is_unspecified:
            return "address: peers can't connect to it"
    if report.port is not None and not 0 < report.port <= MAX_PORT:
        return f"port: expected 1 to {MAX_PORT}"
    return None


def _check_links(report: Report, _: JobShape, __: float) -> str | None:
    if len(report.links) > MAX_LINKS:
        return f"links: more than {MAX_LINKS}"
    if report.speed_mbps < 0:
        return "speed_mbps: below 0"
    for index, link in enumerate(report.links):
        try:
            address = ip_interface(link.address)
        except ValueError:
            return f"links[{index}].address: not an IP address with its prefix length"
        # Other nodes connect to this address, too.
        if "%" in link.address or address.is_multicast or address.is_unspecified:
            return f"links[{index}].address: peers can't connect to it"
        if len(link.interface) > MAX_INTERFACE_CHARS or _is_long(link.address) or link.speed_mbps < 0:
            return f"links[{index}]: a name too long, or a speed below 0"
    return None


def _check_figures(report: Report, _: JobShape, __: float) -> str | None:
    for name, port in (("check_port", report.check_port), ("ping_port", report.ping_port)):
        if port is not None and not 0 < port <= MAX_PORT:
            return f"{name}: expected 1 to {MAX_PORT}"
    if not 0 <= report.fence_seconds <= MAX_FENCE_SECONDS:
        return f"fence_seconds: expected 0 to {MAX_FENCE_SECONDS}"
    result = report.figures
    if result is None:
        return None
    values = (result.sent_mbps, result.received_mbps, result.round_trip_us)
    if any(value is not None and not 0 <= value <= MAX_FIGURE for value in values):
        return f"figures: expected 0 to {MAX_FIGURE:.0f}"
    return "figures.problem: too long" if _is_long(result.problem) else None


def _check_texts(report: Report, _: JobShape, __: float) -> str | None:
    if _is_long(report.interface_why) or len(report.interface or "") > MAX_INTERFACE_CHARS:
        return "interface: too long"
    if report.problem is not None and len(report.problem.message) > MAX_PROBLEM_CHARS:
        return f"problem.message: longer than {MAX_PROBLEM_CHARS} characters"
    if report.problem is not None and _is_invalid_word(report.problem.reason):
        return f"problem.reason: {_WORD_EXPECTED}"
    return None


def _check_rank_numbers(report: Report, shape: JobShape, _: float) -> str | None:
    if len(report.ranks) > shape.procs_per_node:
        return f"ranks: a node of this job has {shape.procs_per_node}"
    node_ranks = shape.list_node_ranks(report)
    for index, rank in enumerate(report.ranks):
        # Another node's rank would overwrite that node's own report.
        if rank.rank not in node_ranks:
            return f"ranks[{index}].rank: this node has ranks {node_ranks.start} to {node_ranks.stop - 1}"
        if not 0 <= rank.local_rank < shape.procs_per_node:
            return f"ranks[{index}].local_rank: expected 0 to {shape.procs_per_node - 1}"
    if len({rank.rank for rank in report.ranks}) != len(report.ranks):
        return "ranks: the same rank twice"
    return None


def _check_rank_states(report: Report, _: JobShape, __: float) -> str | None:
    return _find_first_problem(report.ranks, _find_rank_state_problem)


def _find_rank_state_problem(rank: RankReport) -> str | None:
    if rank.state not in RankState.ALL:
        return f"state: expected one of {', '.join(RankState.ALL)}"
    ended = rank.state == RankState.EXITED
    if ended and rank.ended_age is None:
        return "ended_age: missing, though the rank exited"
    if not ended and any(value is not None for value in (rank.ended_age, rank.exit_code, rank.signal)):
        return "state: not Exited, though the rank has an end"
    return find_end_problem(rank.exit_code, rank.signal)


def _check_launcher(report: Report, _: JobShape, __: float) -> str | None:
    end = report.launcher
    if end is None:
        return None
    if _is_long(end.name):
        return "launcher: a word too long"
    if _is_invalid_word(end.reason):
        return f"launcher.reason: {_WORD_EXPECTED}"
    problem = find_end_problem(end.exit_code, end.signal) or find_lines_problem(end.last_lines)
    return None if problem is None else f"launcher.{problem}"


def _check_rank_values(report: Report, _: JobShape, __: float) -> str | None:
    return _find_first_problem(report.ranks, _find_rank_value_problem)


def _find_rank_value_problem(rank: RankReport) -> str | None:
    if rank.pid is not None and rank.pid <= 0:
        return "pid: below 1"
    for name in ("step", "first_script_step", "rss_bytes", "busy_seconds", "mean_steps_per_second"):
        value = getattr(rank, name)
        if value is not None and value < 0:
            return f"{name}: below 0"
    if rank.total_steps is not None and rank.total_steps < 1:
        return "total_steps: below 1"
    if _is_invalid_word(rank.reason):
        return f"reason: {_WORD_EXPECTED}"
    for name in ("no_step_reason", "activity", "phase"):
        if _is_long(getattr(rank, name)):
            return f"{name}: longer than {MAX_WORD_CHARS} characters"
    return (
        find_collectives_problem(rank.collectives)
        or find_lines_problem(rank.last_lines)
        or find_error_problem(rank.error)
        or find_trainer_status_problem(rank.trainer_status, rank.rank)
    )


def _check_metrics(report: Report, shape: JobShape, _: float) -> str | None:
    if len(report.metrics) > MAX_METRICS:
        return f"metrics: more than {MAX_METRICS}"
    node_ranks = shape.list_node_ranks(report)
    for index, metric in enumerate(report.metrics):
        if metric.rank not in node_ranks:
            return f"metrics[{index}].rank: not of this node"
        if _is_long(metric.name):
            return f"metrics[{index}].name: longer than {MAX_WORD_CHARS} characters"
    return None


def _check_ages(report: Report, shape: JobShape, at: float) -> str | None:
    # The earliest end is the root cause of a job's failure, so no event may be in the future or before the job.
    oldest = max(0.0, at - shape.created_at) + CLOCK_TOLERANCE_SECONDS
    ages = ((path, age) for path, age in _list_ages(report) if age is not None)
    wrong = (path for path, age in ages if not 0.0 <= age <= oldest)
    return next((f"{path}: not between now and the job's creation" for path in wrong), None)


def _list_ages(report: Report) -> Iterator[tuple[str, float | None]]:
    """Yield the path and the value of each age."""
    for index, rank in enumerate(report.ranks):
        for name in ("started_age", "ended_age", "step_age", "first_step_age", "phase_ended_age"):
            yield f"ranks[{index}].{name}", getattr(rank, name)
        yield f"ranks[{index}].error.age", None if rank.error is None else rank.error.age
        yield f"ranks[{index}].trainer_status.age", None if rank.trainer_status is None else rank.trainer_status.age
    yield from ((f"metrics[{index}].age", metric.age) for index, metric in enumerate(report.metrics))
    yield "terminated_age", report.terminated_age
    yield "launcher.age", None if report.launcher is None else report.launcher.age


def _find_first_problem(ranks: Iterable[RankReport], find_problem: Callable[[RankReport], str | None]) -> str | None:
    for index, rank in enumerate(ranks):
        problem = find_problem(rank)
        if problem is not None:
            return f"ranks[{index}].{problem}"
    return None


def _is_long(text: str | None) -> bool:
    return text is not None and len(text) > MAX_WORD_CHARS


def _is_invalid_word(reason: str | None) -> bool:
    return reason is not None and _WORD.fullmatch(reason) is None


# The status contains the reason unchanged, and terminals would execute control characters.
_WORD = re.compile(rf"[A-Za-z][A-Za-z0-9]{{0,{MAX_WORD_CHARS - 1}}}", re.ASCII)
_WORD_EXPECTED = f"expected one CamelCase word of at most {MAX_WORD_CHARS} characters"


_CHECKS: tuple[Callable[[Report, JobShape, float], str | None], ...] = (
    _check_node,
    _check_counters,
    _check_phase,
    _check_address,
    _check_links,
    _check_figures,
    _check_texts,
    _check_rank_numbers,
    _check_rank_states,
    _check_rank_values,
    _check_metrics,
    _check_launcher,
    _check_ages,
)
