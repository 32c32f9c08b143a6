"""Translate restart policies and limits of retries to spec.failurePolicy. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.json_fields import read_integer
from muster.api.spec.failure_policy import MAX_RESTARTS, MAX_VALUES
from muster.api.validation.messages import describe_value
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.pod_template import PodTemplate
from muster.importers.kubernetes.report import Location, Report

REPLICA_POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
"""The restart policies of Kubeflow's replicas."""

DEFAULT_BACKOFF_LIMIT = 6
"""Kubernetes' default for a batch/v1 Job."""

_FIRST_RETRYABLE_CODE = 128
"""Kubeflow restarts a pod with policy ExitCode after this exit code and higher ones."""

_POD_FAILURE_ACTIONS = {"FailJob": "Fail", "Ignore": "Ignore", "Count": "Restart"}
_DISRUPTION = "DisruptionTarget"


@dataclass(frozen=True)
class RestartLimit:
    """How often failed ranks may start again. None: without a limit. `location` is the field that says so."""

    count: int | None
    location: Location


def make_policy(limit: RestartLimit | None, rules: Sequence[JSON], report: Report) -> dict[str, JSON]:
    """Return spec.failurePolicy; empty if the job never restarts."""
    if limit is None or (limit.count == 0 and not rules):
        return {}
    count = limit.count
    if count is None:
        count = MAX_RESTARTS
        report.note(
            limit.location,
            f"restarts have no limit; the imported job has maxRestarts: {MAX_RESTARTS}, and muster restarts all ranks "
            "together",
        )
    if count > MAX_RESTARTS:
        report.add(limit.location, f"found {count}; muster restarts a job at most {MAX_RESTARTS} times")
    return {"maxRestarts": count, **({"rules": list(rules)} if rules else {})}


def read_replica_policy(
    policy: str | None, location: Location, backoff_limit: RestartLimit | None, report: Report
) -> tuple[RestartLimit | None, list[JSON]]:
    """Return the limit and the rules of a Kubeflow replica's restart policy."""
    if policy == "Never":
        if backoff_limit is not None:
            report.note(backoff_limit.location, "with restartPolicy Never, nothing starts again")
        return None, []
    if policy == "Always":
        report.note(location, "muster restarts failed ranks, and never ranks that have succeeded")
    return backoff_limit or RestartLimit(None, location), _make_exit_code_rules() if policy == "ExitCode" else []


def _make_exit_code_rules() -> list[JSON]:
    """Return rules that end the job after a permanent error."""
    codes = range(1, _FIRST_RETRYABLE_CODE)
    return [
        {"action": "Fail", "exitCodes": list(codes[start : start + MAX_VALUES])}
        for start in range(0, len(codes), MAX_VALUES)
    ]


def note_pod_policy(template: PodTemplate, report: Report) -> None:
    """Say that the pod's own restart policy has no effect."""
    if template.pod.get("restartPolicy") is not None:
        report.note(
            template.pod_location.child("restartPolicy"),
            "spec.failurePolicy of the imported job decides about restarts",
        )


def read_pod_failure_policy(parent: Fields) -> list[JSON]:
    """Translate the rules of a batch/v1 Job's podFailurePolicy."""
    rules: list[JSON] = []
    for rule in parent.take_fields("podFailurePolicy").take_entries("rules"):
        action = rule.take_choice("action", tuple(_POD_FAILURE_ACTIONS))
        codes = _read_exit_codes(rule.take_fields("onExitCodes"))
        conditions = rule.take_entries("onPodConditions")
        types = [condition.take_text("type") for condition in conditions]
        for condition in conditions:
            condition.take("status")
        if types:
            _report_conditions(rule, action, types)
        elif codes and action is not None:
            rules.append({"action": _POD_FAILURE_ACTIONS[action], "exitCodes": codes})
    return rules


def _read_exit_codes(fields: Fields) -> list[JSON]:
    fields.ignore("containerName", "muster compares the exit code of the rank that failed first")
    operator = fields.take_choice("operator", ("In", "NotIn"))
    values = fields.take_list("values")
    for index, value in enumerate(values):
        if read_integer(value) is None:
            fields.report.add(
                fields.locate("values").child(index), f"found {describe_value(value)}; an exit code is expected"
            )
    if operator == "NotIn":
        fields.report.add(fields.locate("operator"), "found NotIn; a rule of failurePolicy lists the codes: use In")
        return []
    return [value for value in values if read_integer(value) is not None]


def _report_conditions(rule: Fields, action: str | None, types: Sequence[str | None]) -> None:
    if action == "Ignore" and set(types) == {_DISRUPTION}:
        rule.report.note(
            rule.location, "muster restarts after disruptions without it, at most maxDisruptions (10) times"
        )
    else:
        rule.report.add(
            rule.location.child("onPodConditions"),
            f"found {', '.join(map(str, types))} with action {action}; only Ignore with {_DISRUPTION} has an "
            "equivalent",
        )


def count_tries(backoff_limit: int, restarts: int) -> int:
    """Return how often failed pods start again, if each of several tries has its own limit."""
    return (backoff_limit + 1) * (restarts + 1) - 1
