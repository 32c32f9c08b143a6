"""Translate the lifecycle policies of Volcano to spec.failurePolicy. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.pod_template import PodTemplate
from muster.importers.kubernetes.report import Location, Report
from muster.importers.kubernetes.restarts import RestartLimit, note_pod_policy

_RESTARTS = ("RestartJob", "RestartTask", "RestartPod")
_ENDS = ("AbortJob", "TerminateJob")
_COMPLETES = "CompleteJob"


@dataclass(frozen=True)
class Policies:
    """What restarts the job. `location` is the list of policies; `codes` are exit codes that restart or end the job."""

    location: Location
    restarts_after_failure: bool = False
    restarts_after_eviction: bool = False
    codes: tuple[JSON, ...] = ()


def read_policies(parent: Fields) -> Policies:
    """Read the policies of a job or a task."""
    failure, eviction = False, False
    rules: list[JSON] = []
    for fields in parent.take_entries("policies"):
        action = fields.take_text("action")
        events = [event for event in (fields.take_text("event"), *fields.take_texts("events")) if event is not None]
        code = fields.take_integer("exitCode", 1)
        fields.refuse("timeout", "muster acts at once; remove it")
        if code is not None and action in (*_RESTARTS, *_ENDS):
            rules.append({"action": "Restart" if action in _RESTARTS else "Fail", "exitCodes": [code]})
            continue
        for event in events:
            if not _is_known(action, event):
                fields.report.add(fields.location, f"found {action} at {event}, which has no equivalent; remove it")
            failure = failure or (action in _RESTARTS and event in ("PodFailed", "*"))
            eviction = eviction or (action in _RESTARTS and event in ("PodEvicted", "*"))
        if not events:
            fields.report.add(fields.location, f"found {action} without an event that muster knows; remove it")
    return Policies(parent.locate("policies"), failure, eviction, tuple(rules))


def _is_known(action: str | None, event: str) -> bool:
    if action in _RESTARTS:
        return event in ("PodFailed", "PodEvicted", "*")
    if action in _ENDS:
        return event in ("PodFailed", "PodEvicted", "TaskFailed", "*")
    return action == _COMPLETES and event == "TaskCompleted"


def make_volcano_policy(
    policies: Sequence[Policies], templates: Sequence[PodTemplate | None], limit: RestartLimit, report: Report
) -> tuple[dict[str, JSON], Location]:
    """Return spec.failurePolicy and its origin; empty if nothing restarts."""
    pod_restarts = [
        template
        for template in templates
        if template is not None and template.pod.get("restartPolicy") in ("OnFailure", "Always")
    ]
    for template in templates:
        if template is not None:
            note_pod_policy(template, report)
    rules = [rule for policy in policies for rule in policy.codes]
    restarts = bool(pod_restarts) or any(policy.restarts_after_failure for policy in policies)
    restarts = restarts or any("Restart" in str(rule) for rule in rules)
    evictions = any(policy.restarts_after_eviction for policy in policies)
    if not restarts and not evictions:
        return {}, limit.location
    result: dict[str, JSON] = {"maxRestarts": (limit.count or 0) if restarts else 0}
    if evictions:
        result["maxDisruptions"] = limit.count or 0
    if rules:
        result["rules"] = rules
    return result, limit.location
