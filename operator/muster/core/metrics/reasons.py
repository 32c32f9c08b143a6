"""The reasons that metrics have as label values.

A reason may come from a tenant's agent, which can report any word. Each label value is a time series that Prometheus
keeps, so metrics have only muster's own reasons, and `OTHER` for the rest.
"""

OTHER = "Other"

_OF_RANKS = (
    *("RankFailed", "RankKilled", "OOMKilled", "CommandNotFound", "CommandNotExecutable", "WrapperLost"),
    *("Hung", "Straggler", "LauncherFailed", "RanksLost", "RanksNotStarted", "WorldSizeMismatch", "NetworkMismatch"),
)
_OF_JOBS = ("StartupTimeout", "DeadlineExceeded", "StopRequested", "RestartRequested", "Resized", "AllRanksSucceeded")
_OF_NODES = (
    *("AgentLost", "NodeLost", "NodeShutdown", "NodeStopped", "PodDeleted", "Preempted", "Evicted", "ContainerKilled"),
    *("InitContainerFailed", "SidecarFailed", "PodDeadlineExceeded", "RefusedByKubelet", "AgentUnreachable"),
    "Fenced",
)
_OF_AGENTS = (
    *("AgentNeedsPython", "NoInterface", "NoPort", "PeerUnreachable", "NetworkUnsupported", "RootUnusable"),
    *("BadMetric", "BadStart", "NodesNotApart", "NodeProblem", "SourceUnusable"),
)
_OF_FILES = (
    *("S3AccessDenied", "S3CredentialsMissing", "S3CredentialsExpired", "S3NotFound", "S3Changed", "S3KeysUnusable"),
    *("S3Unreachable", "S3Refused", "GitUnreachable", "GitCommitNotFound", "GitAccessDenied", "GitTokenMissing"),
    *("GitTooSlow", "SourceRefused", "FolderUnusable", "SyncLost"),
)
_OF_SAGEMAKER = (
    *("AwsCredentialsMissing", "AwsCredentialsExpired", "AwsAccessDenied", "AwsThrottled", "AwsUnavailable"),
    *("NoCapacity", "TrainingJobExists", "RefusedByAws", "AwsNotFound", "AlgorithmError", "InternalServerError"),
    *("ClientError", "TrainingJobFailed", "InsufficientCapacity", "SpotInterrupted", "MaxRuntimeExceeded"),
    *("MaxWaitTimeExceeded", "StoppedElsewhere", "TrainingJobGone", "TrainingJobLeftRunning"),
)

REASONS = frozenset((*_OF_RANKS, *_OF_JOBS, *_OF_NODES, *_OF_AGENTS, *_OF_FILES, *_OF_SAGEMAKER))
"""The reasons with which an attempt or a job ends."""


def label_reason(reason: str) -> str:
    """Return the label value of a reason: the reason itself if it is one of muster's."""
    return reason if reason in REASONS else OTHER
