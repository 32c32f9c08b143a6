"""The message that an agent writes to its pod's termination log."""

from dataclasses import dataclass

from muster_worker.contract.schema import AgentProblem, LauncherEnd, RankReport


@dataclass(frozen=True)
class TerminationMessage:
    """The content of a pod's termination log, which the agent writes so that its result survives a lost report.

    `ranks` is the number of the node's ranks. `succeeded` is the number of ranks with exit code 0. `first_failure` is
    the first rank of the node that failed. `terminated` is set if something other than muster stopped the agent. The
    user's code can also write this file, so its content may affect only its own node.
    """

    job_uid: str
    node: int
    replacement: int
    attempt: int
    ranks: int = 0
    succeeded: int = 0
    terminated: bool = False
    problem: AgentProblem | None = None
    launcher: LauncherEnd | None = None
    first_failure: RankReport | None = None
