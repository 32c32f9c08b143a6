"""What is wrong with a pod, as one word and one sentence: an ordered list of checks, the first that applies. Pure."""

from collections.abc import Callable

from muster.backends.kubernetes import end_troubles, scheduling, start_troubles
from muster.backends.kubernetes.containers import Terminated
from muster.backends.kubernetes.pods import PodView
from muster.backends.kubernetes.warnings import Warned
from muster.plan.facts import Trouble

Check = Callable[[PodView, tuple[Warned, ...]], Trouble | None]

_CHECKS: tuple[Check, ...] = (
    # What the kubelet writes over a whole pod explains all that its containers say.
    end_troubles.evicted,
    end_troubles.deadline_exceeded,
    end_troubles.refused_by_kubelet,
    end_troubles.machine_lost,
    # The container's own end comes before what was done to the pod afterwards, or because of it.
    end_troubles.out_of_memory,
    start_troubles.not_started,
    start_troubles.python_unusable,
    end_troubles.init_failed,
    # Whoever takes a pod away deletes it, too: the reason says more than the deletion.
    end_troubles.disrupted,
    end_troubles.deleted,
    end_troubles.killed,
    # From here on it waits; each is a step further on its way, and an earlier step's warning may be left over.
    scheduling.unplaced,
    start_troubles.image_missing,
    start_troubles.config_missing,
    start_troubles.not_created,
    start_troubles.volume_not_mounted,
    start_troubles.sandbox_failed,
    # A neighbour that failed is the least of it while trainer can't begin for a reason of its own.
    end_troubles.sidecar_failed,
)


def find_trouble(pod: PodView, warnings: tuple[Warned, ...] = ()) -> Trouble | None:
    """What keeps the pod from work, or ended it; None when all is well or only its agent can tell."""
    state = pod.trainer.state
    # It came to its own good end; whatever happens to the pod after that does no harm.
    if isinstance(state, Terminated) and state.exit_code == 0:
        return None
    return next((found for check in _CHECKS if (found := check(pod, warnings)) is not None), None)
