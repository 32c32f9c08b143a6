"""Why no machine takes a pod, out of the scheduler's words. Pure."""

import re

from muster.core.facts import Problem
from muster.core.failure.problems import SCHEDULING_GATED, UNSCHEDULABLE
from muster.diagnose.kubernetes.quoting import quote
from muster.objects.kubernetes.pods import PodView
from muster.objects.kubernetes.warnings import Warned
from muster.render.kubernetes.gang import KUEUE_GATE

VOLUME_CLAIM_MISSING = "VolumeClaimMissing"

_NOT_ADMITTED = (
    "Kueue has not admitted the job yet: `kubectl get workloads.kueue.x-k8s.io` tells why; without one for the job, "
    "Kueue does not manage pods of this namespace"
)

_VERDICT = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
# What could be done by evicting others is no news: it could not, or it would have been done.
_AFTERWORDS = re.compile(r"\.? (?:no new claims to deallocate|preemption: ).*", re.DOTALL)
_COUNTED = re.compile(r"(\d+) (.*)", re.DOTALL)
_MISSING_CLAIM = re.compile(
    r'(?:persistentvolumeclaim "|could not find v1\.PersistentVolumeClaim "[^"/]*/)([^"/]{1,253})"'
    r"(?: not found| bound to non-existent|$)"
)
_TAINT = re.compile(r"node\(s\) had untolerated taints?(?:\(s\))? ?(\{[^}]*\})?")

_LACKS = "Insufficient "
_REASONS = (
    ("Too many pods", "have no place for another pod"),
    ("node(s) didn't match Pod's node affinity", "don't match its node selector or node affinity"),
    ("node(s) didn't match node selector", "don't match its node selector"),
    ("node(s) were unschedulable", "are cordoned"),
    ("node(s) had volume node affinity conflict", "can't reach its volume"),
    ("node(s) had no available volume zone", "are not in its volume's zone"),
    ("node(s) exceed max volume count", "have no place for another volume"),
    ("node(s) didn't have free ports", "have its host ports taken"),
    ("node(s) didn't match pod topology spread", "would break its topology spread constraints"),
    ("node(s) didn't match pod affinity", "don't match its pod affinity"),
    ("node(s) didn't match pod anti-affinity", "are ruled out by its pod anti-affinity"),
)


def unplaced(pod: PodView, _: tuple[Warned, ...]) -> Problem | None:
    """What keeps the pod from being placed on a machine."""
    placed = pod.condition("PodScheduled")
    if pod.machine or placed is None or placed.is_true:
        return None
    if placed.reason == "SchedulingGated":
        if pod.gates == (KUEUE_GATE,):
            return Problem(SCHEDULING_GATED, _NOT_ADMITTED)
        gates = ", ".join(quote(gate, 80) for gate in pod.gates[:4])
        return Problem(SCHEDULING_GATED, f"the scheduling gate {gates} holds it: who set it has to lift it")
    missing = _MISSING_CLAIM.search(placed.message)
    # A place is found by and by; a missing claim has to be created.
    if missing is not None:
        words = f"PersistentVolumeClaim {missing.group(1)} doesn't exist in namespace {pod.namespace}: create it"
        return Problem(VOLUME_CLAIM_MISSING, words)
    unbound = _unbound(pod, placed.message)
    if unbound is not None:
        return Problem(UNSCHEDULABLE, unbound)
    return Problem(UNSCHEDULABLE, verdict(placed.message), lacks(placed.message))


def verdict(message: str) -> str:
    """What the scheduler found missing, and on how many machines."""
    match = _VERDICT.match(message)
    if match is None:
        return f"the scheduler can't place it: {quote(message)}"
    parts = _parts(match.group(2))
    lacks_room = any(part.partition(" ")[2].startswith((_LACKS, "Too many pods")) for part in parts)
    head = "has room" if lacks_room else "fits"
    of = "the only node" if match.group(1) == "1" else f"none of {match.group(1)} nodes"
    if of == "the only node":
        head = "has no room" if lacks_room else "doesn't fit"
    return quote(f"{of} {head}: {', '.join(map(_part, parts))}")


def lacks(message: str) -> str:
    """The same in words without numbers: what the cluster lacks first, then what keeps the pod off its machines."""
    match = _VERDICT.match(message)
    if match is None:
        return ""
    whats = [part.partition(" ")[2] for part in _parts(match.group(2))]
    missing = sorted({what.removeprefix(_LACKS) for what in whats if what.startswith(_LACKS)})
    others = sorted({other for what in whats if not what.startswith(_LACKS) and (other := _problem(what))})
    return quote(", ".join([*(f"insufficient {name}" for name in missing), *others]))


def _problem(what: str) -> str:
    taint = _TAINT.match(what)
    if taint is None:
        return next((f"machines that {ours}" for theirs, ours in _REASONS if what.startswith(theirs)), what)
    # No job runs there anyway: leave it out.
    key = taint.group(1) or ""
    return "" if "node-role.kubernetes.io/" in key else f"untolerated taint {key}".rstrip()


def _parts(words: str) -> list[str]:
    return re.split(r", (?=\d+ )", _AFTERWORDS.sub("", words).rstrip(". \n"))


def _part(part: str) -> str:
    counted = _COUNTED.fullmatch(part)
    if counted is None:
        return part
    count, what = counted.groups()
    if what.startswith(_LACKS):
        return f"{count} lack {what.removeprefix(_LACKS)}"
    taint = _TAINT.match(what)
    if taint is not None:
        return f"{count} have a taint that it doesn't tolerate {taint.group(1) or ''}".rstrip()
    return next((f"{count} {ours}" for theirs, ours in _REASONS if what.startswith(theirs)), part)


def _unbound(pod: PodView, message: str) -> str | None:
    if "unbound immediate PersistentVolumeClaims" in message:
        names = ", ".join(pod.claims[:4])
        return (
            f"no volume is bound to PersistentVolumeClaim {names}: "
            "`kubectl describe pvc` tells why; its storage class may be missing or out of space"
        )
    return None
