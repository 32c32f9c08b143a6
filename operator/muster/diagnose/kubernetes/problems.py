"""Find a pod's problem with an ordered list of checks; the first match counts. Pure."""

from collections.abc import Callable

from muster.core.facts import Problem
from muster.diagnose.kubernetes import end_problems, scheduling, start_problems
from muster.objects.kubernetes.containers import Terminated
from muster.objects.kubernetes.pods import PodView
from muster.objects.kubernetes.warnings import PodWarning

Check = Callable[[PodView, tuple[PodWarning, ...]], Problem | None]

_CHECKS: tuple[Check, ...] = (
    # Reasons that the kubelet reports for the whole pod explain its containers' states.
    end_problems.evicted,
    end_problems.deadline_exceeded,
    end_problems.refused_by_kubelet,
    end_problems.machine_lost,
    # The container's own end precedes what happened to the pod afterwards.
    end_problems.out_of_memory,
    start_problems.not_started,
    start_problems.python_unusable,
    end_problems.init_failed,
    # An eviction also deletes the pod, and its reason is more specific.
    end_problems.disrupted,
    end_problems.deleted,
    end_problems.killed,
    # From here on the pod waits. Warnings of earlier steps may still be present.
    scheduling.unplaced,
    start_problems.image_missing,
    start_problems.config_missing,
    start_problems.not_created,
    start_problems.volume_not_mounted,
    start_problems.sandbox_failed,
    # A failed sidecar comes last, because trainer may be unable to start for a reason of its own.
    end_problems.sidecar_failed,
    start_problems.files_fetched,
)


def find_problem(pod: PodView, warnings: tuple[PodWarning, ...] = ()) -> Problem | None:
    """The problem that stops or blocks the pod; None without one, or if only the agent can report it."""
    state = pod.trainer.state
    # The agent has exited successfully; later events of the pod don't matter.
    if isinstance(state, Terminated) and state.exit_code == 0:
        return None
    return next((result for check in _CHECKS if (result := check(pod, warnings)) is not None), None)
