"""What is wrong with a pod, as one word and one sentence: an ordered list of checks, the first that applies. Pure."""

from collections.abc import Callable

from muster.core.facts import Problem
from muster.diagnose.kubernetes import end_problems, scheduling, start_problems
from muster.objects.kubernetes.containers import Terminated
from muster.objects.kubernetes.pods import PodView
from muster.objects.kubernetes.warnings import Warned

Check = Callable[[PodView, tuple[Warned, ...]], Problem | None]

_CHECKS: tuple[Check, ...] = (
    # What the kubelet writes over a whole pod explains all that its containers say.
    end_problems.evicted,
    end_problems.deadline_exceeded,
    end_problems.refused_by_kubelet,
    end_problems.machine_lost,
    # The container's own end comes before what was done to the pod afterwards, or because of it.
    end_problems.out_of_memory,
    start_problems.not_started,
    start_problems.python_unusable,
    end_problems.init_failed,
    # An eviction deletes the pod, too: its reason says more than the deletion.
    end_problems.disrupted,
    end_problems.deleted,
    end_problems.killed,
    # From here on it waits; each is a step further on its way, and an earlier step's warning may be left over.
    scheduling.unplaced,
    start_problems.image_missing,
    start_problems.config_missing,
    start_problems.not_created,
    start_problems.volume_not_mounted,
    start_problems.sandbox_failed,
    # A neighbour that failed is the least of it while trainer can't begin for a reason of its own.
    end_problems.sidecar_failed,
    start_problems.files_fetched,
)


def find_problem(pod: PodView, warnings: tuple[Warned, ...] = ()) -> Problem | None:
    """What keeps the pod from work, or ended it; None when all is well or only its agent can tell."""
    state = pod.trainer.state
    # It came to its own good end; whatever happens to the pod after that does no harm.
    if isinstance(state, Terminated) and state.exit_code == 0:
        return None
    return next((result for check in _CHECKS if (result := check(pod, warnings)) is not None), None)
