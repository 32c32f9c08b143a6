"""Find a pod's problem with an ordered list of checks, and return the first problem. Pure."""

from collections.abc import Callable

from muster.core.problem import Problem
from muster.diagnose.kubernetes import end_problems, scheduling, start_problems
from muster.objects.kubernetes.containers import Terminated
from muster.objects.kubernetes.pods import PodView
from muster.objects.kubernetes.warnings import PodWarning

Check = Callable[[PodView, tuple[PodWarning, ...]], Problem | None]

_CHECKS: tuple[Check, ...] = (
    # First check the reasons of the whole pod, which explain its containers' states.
    end_problems.find_eviction,
    end_problems.find_exceeded_deadline,
    end_problems.find_kubelet_refusal,
    end_problems.find_lost_kube_node,
    # Then check the container's own end, which precedes later events of the pod.
    end_problems.find_out_of_memory,
    start_problems.find_start_failure,
    start_problems.find_unusable_python,
    end_problems.find_failed_init_container,
    # An eviction also deletes the pod, and its reason is more specific.
    end_problems.find_disruption,
    end_problems.find_queue_eviction,
    end_problems.find_deletion,
    end_problems.find_kill,
    # From here on, the pod waits. It may still have warnings about earlier stages of its start.
    scheduling.find_scheduling_problem,
    start_problems.find_missing_image,
    start_problems.find_missing_config,
    start_problems.find_creation_failure,
    start_problems.find_mount_failure,
    start_problems.find_sandbox_failure,
    # Check the sidecars last, because `trainer` may have its own problem.
    end_problems.find_failed_sidecar,
    start_problems.find_running_download,
)


def find_problem(pod: PodView, warnings: tuple[PodWarning, ...] = ()) -> Problem | None:
    """Return the problem that stops or blocks the pod, if its status or Events show one."""
    state = pod.trainer.state
    # The agent has exited successfully, so the pod's later problems don't matter.
    if isinstance(state, Terminated) and state.exit_code == 0:
        return None
    return next((result for check in _CHECKS if (result := check(pod, warnings)) is not None), None)
