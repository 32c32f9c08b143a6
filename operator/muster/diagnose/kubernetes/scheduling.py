"""Explain why a pod can't be scheduled, from the scheduler's message. Pure."""

import re

from muster.core.failure.problems import SCHEDULING_GATED, UNSCHEDULABLE
from muster.core.problem import Problem
from muster.diagnose.kubernetes.quoting import quote
from muster.objects.kubernetes.kueue import ADMISSION_GATE, TOPOLOGY_GATE
from muster.objects.kubernetes.pods import PodView
from muster.objects.kubernetes.warnings import PodWarning

VOLUME_CLAIM_MISSING = "VolumeClaimMissing"

_SCHEDULING_FAILURE = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
# Ignore the text about preemption. If preemption could help, the pod would be scheduled.
_PREEMPTION_RESULT = re.compile(r"\.? (?:no new claims to deallocate|preemption: ).*", re.DOTALL)
_COUNTED = re.compile(r"(\d+) (.*)", re.DOTALL)
_MISSING_CLAIM = re.compile(
    r'(?:persistentvolumeclaim "|could not find v1\.PersistentVolumeClaim "[^"/]*/)([^"/]{1,253})"'
    r"(?: not found| bound to non-existent|$)"
)
_TAINT = re.compile(r"node\(s\) had untolerated taints?(?:\(s\))? ?(\{[^}]*\})?")

_INCOMPLETE_GANG = re.compile(
    r"optimistic rejection in PostFilter|rejection in Unreserve|after waiting \S+ at plugin Coscheduling"
    r"|cannot find enough sibling pods|podGroup \S+ failed recently"
)
"""What coscheduling (scheduler-plugins 0.33) says about a pod because of the other pods of its group."""

_INSUFFICIENT = "Insufficient "
_REASONS = (
    ("Too many pods", "can't run another pod"),
    ("node(s) didn't match Pod's node affinity", "don't match its node selector or node affinity"),
    ("node(s) didn't match node selector", "don't match its node selector"),
    ("node(s) were unschedulable", "are cordoned"),
    ("node(s) had volume node affinity conflict", "can't reach its volume"),
    ("node(s) had no available volume zone", "are not in its volume's zone"),
    ("node(s) exceed max volume count", "can't attach another volume"),
    ("node(s) didn't have free ports", "have its host ports taken"),
    ("node(s) didn't match pod topology spread", "would break its topology spread constraints"),
    ("node(s) didn't match pod affinity", "don't match its pod affinity"),
    ("node(s) didn't match pod anti-affinity", "are ruled out by its pod anti-affinity"),
)


def find_scheduling_problem(pod: PodView, _: tuple[PodWarning, ...]) -> Problem | None:
    """Return why the pod isn't scheduled yet; None if it is, or if the scheduler has not reported a problem."""
    scheduled = pod.find_condition("PodScheduled")
    if pod.kube_node or scheduled is None or scheduled.is_true:
        return None
    if scheduled.reason == "SchedulingGated":
        return Problem(SCHEDULING_GATED, _describe_gates(pod))
    missing = _MISSING_CLAIM.search(scheduled.message)
    # A missing claim is more specific than the scheduler's result.
    if missing is not None:
        text = f"PersistentVolumeClaim {missing.group(1)} doesn't exist in namespace {pod.namespace}: create it"
        return Problem(VOLUME_CLAIM_MISSING, text)
    unbound = _find_unbound_claims(pod, scheduled.message)
    if unbound is not None:
        return Problem(UNSCHEDULABLE, unbound)
    if _INCOMPLETE_GANG.search(scheduled.message):
        return Problem(
            UNSCHEDULABLE, "coscheduling places it once all pods of its gang have room", "no room for the whole gang"
        )
    return Problem(UNSCHEDULABLE, describe_scheduling_failure(scheduled.message), describe_shortage(scheduled.message))


def _describe_gates(pod: PodView) -> str:
    # Kueue's webhook adds the second gate, also where Kueue chooses no topology domains.
    if ADMISSION_GATE in pod.scheduling_gates and {*pod.scheduling_gates} <= {ADMISSION_GATE, TOPOLOGY_GATE}:
        return _describe_kueue_gate(pod)
    scheduling_gates = ", ".join(quote(gate, 80) for gate in pod.scheduling_gates[:4])
    return f"the scheduling gate {scheduling_gates} blocks it until the gate's owner removes the gate"


def _describe_kueue_gate(pod: PodView) -> str:
    if not pod.kueue.is_managed:
        return (
            f"Kueue does not manage the pods of namespace {pod.namespace}: Kueue's configuration has to list the "
            "integration pod, and its managedJobsNamespaceSelector has to select the namespace"
        )
    return f"Kueue has not admitted the job yet: `kubectl describe workload {pod.kueue.group}` tells why"


def describe_scheduling_failure(message: str) -> str:
    """Return what is missing, and on how many Kubernetes nodes."""
    match = _SCHEDULING_FAILURE.match(message)
    if match is None:
        return f"the scheduler can't place it: {quote(message)}"
    parts = _split_parts(match.group(2))
    lacks_room = any(part.partition(" ")[2].startswith((_INSUFFICIENT, "Too many pods")) for part in parts)
    head = "has room" if lacks_room else "fits"
    of = "the only node" if match.group(1) == "1" else f"none of {match.group(1)} nodes"
    if of == "the only node":
        head = "has no room" if lacks_room else "doesn't fit"
    return quote(f"{of} {head}: {', '.join(map(_describe_part, parts))}")


def describe_shortage(message: str) -> str:
    """Return what is missing, without numbers. Resources come first, then other reasons."""
    match = _SCHEDULING_FAILURE.match(message)
    if match is None:
        return ""
    reasons = [part.partition(" ")[2] for part in _split_parts(match.group(2))]
    missing = sorted({reason.removeprefix(_INSUFFICIENT) for reason in reasons if reason.startswith(_INSUFFICIENT)})
    others = sorted(
        {other for reason in reasons if not reason.startswith(_INSUFFICIENT) and (other := _describe_reason(reason))}
    )
    return quote(", ".join([*(f"insufficient {name}" for name in missing), *others]))


def _describe_reason(reason: str) -> str:
    taint = _TAINT.match(reason)
    if taint is None:
        return next((f"machines that {text}" for prefix, text in _REASONS if reason.startswith(prefix)), reason)
    # Omit control-plane nodes, because no job runs on them.
    key = taint.group(1) or ""
    return "" if "node-role.kubernetes.io/" in key else f"untolerated taint {key}".rstrip()


def _split_parts(text: str) -> list[str]:
    return re.split(r", (?=\d+ )", _PREEMPTION_RESULT.sub("", text).rstrip(". \n"))


def _describe_part(part: str) -> str:
    counted = _COUNTED.fullmatch(part)
    if counted is None:
        return part
    count, reason = counted.groups()
    if reason.startswith(_INSUFFICIENT):
        return f"{count} lack {reason.removeprefix(_INSUFFICIENT)}"
    taint = _TAINT.match(reason)
    if taint is not None:
        return f"{count} have a taint that it doesn't tolerate {taint.group(1) or ''}".rstrip()
    return next((f"{count} {text}" for prefix, text in _REASONS if reason.startswith(prefix)), part)


def _find_unbound_claims(pod: PodView, message: str) -> str | None:
    if "unbound immediate PersistentVolumeClaims" in message:
        names = ", ".join(pod.volume_claims[:4])
        return (
            f"no volume is bound to PersistentVolumeClaim {names}: "
            "`kubectl describe pvc` tells why; its storage class may be missing or out of space"
        )
    return None
