"""The reasons that are label values of metrics.

A tenant's agent can report any word as a reason, and each label value is a time series that Prometheus stores. So
metrics have only muster's own reasons, and `OTHER` for the rest.
"""

OTHER = "Other"

_RANK_REASONS = (
    *("RankFailed", "RankKilled", "OOMKilled", "CommandNotFound", "CommandNotExecutable", "WrapperLost"),
    *("Hung", "Straggler", "LauncherFailed", "RanksLost", "RanksNotStarted", "WorldSizeMismatch", "NetworkMismatch"),
)
_JOB_REASONS = (
    "StartupTimeout",
    "DeadlineExceeded",
    "StopRequested",
    "RestartRequested",
    "Resized",
    "AllRanksSucceeded",
)
_NODE_REASONS = (
    *("AgentLost", "NodeLost", "NodeShutdown", "NodeStopped", "PodDeleted", "Preempted", "Evicted", "ContainerKilled"),
    *("InitContainerFailed", "SidecarFailed", "PodDeadlineExceeded", "RefusedByKubelet", "AgentUnreachable"),
    "Fenced",
)
_AGENT_REASONS = (
    *("AgentNeedsPython", "NoInterface", "NoPort", "PeerUnreachable", "NetworkUnsupported", "RootUnusable"),
    *("BadMetric", "BadStart", "NodesNotApart", "NodeProblem", "SourceUnusable"),
)
_FILE_REASONS = (
    *("S3AccessDenied", "S3CredentialsMissing", "S3CredentialsExpired", "S3NotFound", "S3Changed", "S3KeysUnusable"),
    *("S3Unreachable", "S3Refused", "GitUnreachable", "GitCommitNotFound", "GitAccessDenied", "GitTokenMissing"),
    *("GitTooSlow", "SourceRefused", "FolderUnusable", "SyncLost"),
)
_SAGEMAKER_REASONS = (
    *("AwsCredentialsMissing", "AwsCredentialsExpired", "AwsAccessDenied", "AwsThrottled", "AwsUnavailable"),
    *("NoCapacity", "TrainingJobExists", "RefusedByAws", "AwsNotFound", "AlgorithmError", "InternalServerError"),
    *("ClientError", "TrainingJobFailed", "InsufficientCapacity", "SpotInterrupted", "MaxRuntimeExceeded"),
    *("MaxWaitTimeExceeded", "StoppedElsewhere", "TrainingJobGone", "TrainingJobLeftRunning"),
)

REASONS = frozenset(
    (*_RANK_REASONS, *_JOB_REASONS, *_NODE_REASONS, *_AGENT_REASONS, *_FILE_REASONS, *_SAGEMAKER_REASONS)
)
"""The reasons for which attempts and jobs end."""


def label_reason(reason: str) -> str:
    """Return the label value of a reason: the reason itself if it is one of muster's."""
    return reason if reason in REASONS else OTHER
