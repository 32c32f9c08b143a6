"""What is wrong with a job of the chaos test once it has ended."""

from copy import deepcopy
from typing import Any

from cluster.reasons import machine
from cluster.reasons.chaos import FAILURES, Harm, Victim
from cluster.reasons.timeline import ObservedChange, condition
from muster.api.spec.node_ranges import parse
from support.chaos_job import find_wrong_restarts, find_wrong_states, find_wrong_steps

HEALTHY_SECONDS = 60.0
"""The time after which a rank that was killed or frozen may not be reported as running: the network may be cut, or no
operator may lead meanwhile.
"""


def find_problems(victim: Victim) -> list[str]:
    """Return what is wrong with a job, and delete it."""
    seen = victim.statuses()
    if not victim.has_ended:
        return [f"not over: {seen[-1].status.get('message') if seen else 'no status'}"]
    last = seen[-1]
    is_complete = last.status["phase"] == "Succeeded"
    problems = [] if is_complete else _find_wrong_failure(victim, last)
    problems += find_wrong_restarts(victim.reasons, _with_failure(last))
    problems += find_wrong_states(last.status)
    problems += [problem for harm in victim.harms for problem in _find_wrong_health(harm, seen)]
    problems += find_wrong_steps(victim.folder, victim.shape.world, is_complete=is_complete)
    return problems + _find_leftovers(victim)


def describe_end(victim: Victim) -> str:
    """Return the restarts of a job, and how it ended."""
    seen = victim.statuses()
    status = seen[-1].status if seen else {}
    reasons = [record["reason"] for record in status.get("restarts", {}).get("history", [])]
    return f"restarted for {reasons}, {status.get('phase')}: {status.get('message')}"


def _with_failure(last: ObservedChange) -> dict[str, Any]:
    """Return the status with the failure that ended the job in its history, which has only those before it."""
    status: dict[str, Any] = deepcopy(last.status)
    if status["phase"] == "Failed":
        history = status.setdefault("restarts", {}).setdefault("history", [])
        history.append({"reason": condition(last, "Failed").get("reason")})
    return status


def _find_wrong_failure(victim: Victim, last: ObservedChange) -> list[str]:
    """A job fails only for more failures than its policy allows."""
    failures = sum(reasons in FAILURES for reasons in victim.reasons)
    if failures > victim.shape.max_restarts and "failurePolicy.maxRestarts" in last.status["message"]:
        return []
    return [f"Failed after {failures} failures: {last.status['message']}"]


def _find_wrong_health(harm: Harm, seen: list[ObservedChange]) -> list[str]:
    late = [each for each in seen if each.at > harm.at + HEALTHY_SECONDS and each.status.get("attempt") == harm.attempt]
    return [f"{harm} is still reported as running" for each in late if _runs(harm.rank, each.status)][:1]


def _runs(rank: int, status: dict[str, Any]) -> bool:
    by_state = status.get("ranks", {}).get("byState", [])
    return any(rank in parse(entry["ranks"]) for entry in by_state if entry["state"] == "Running")


def _find_leftovers(victim: Victim) -> list[str]:
    victim.stage.jobs.run("delete", f"dtj/{victim.name}")
    try:
        victim.stage.until(lambda: not victim.stage.jobs.children(victim.name))
        victim.stage.until(lambda: not machine.with_variable(victim.mark))
    except AssertionError:
        objects, processes = victim.stage.jobs.children(victim.name), machine.with_variable(victim.mark)
        return [f"left over: {sorted(objects)}, processes {processes}"]
    return []
