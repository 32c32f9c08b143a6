"""The source of each field of a CreateTrainingJob request, and its purpose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """`source` is a field of the job, or `muster`; `why` is the purpose of the request's field."""

    group: str
    source: str
    why: str


GROUPS = ("Job", "Image", "Toolkit", "Data", "Instances", "Debugging")

_JOB = {
    "TrainingJobName": ("muster", "the same for the same attempt, so that SageMaker rejects a duplicate request"),
    "RoleArn": ("spec.sagemaker.role", "the training job's role"),
    "Tags[muster.dev/": ("muster", "muster recognizes its training job by it"),
    "Tags": ("spec.sagemaker.tags", "yours"),
    "ExperimentConfig": ("spec.sagemaker.experiment", "the training job's experiment"),
}
_IMAGE = {
    "AlgorithmSpecification.TrainingImageConfig": ("spec.sagemaker.imageRepository", "where the image comes from"),
    "AlgorithmSpecification.TrainingImage": ("spec.sagemaker.framework", "SageMaker's image in the region"),
    "AlgorithmSpecification.Container": ("spec.command", "what the container starts"),
    "AlgorithmSpecification.MetricDefinitions": ("spec.metrics", "SageMaker reads them from the log"),
    "AlgorithmSpecification.EnableSageMakerMetrics": ("spec.sagemaker.metricsTimeSeries", "metrics as time series"),
}
_TOOLKIT = {
    "HyperParameters.sagemaker_submit_directory": ("spec.source", "the toolkit unpacks it"),
    "HyperParameters.sagemaker_program": ("spec.command", "the toolkit starts it"),
    "HyperParameters.sagemaker_container_log_level": ("spec.sagemaker.containerLogLevel", "the toolkit's log level"),
    "HyperParameters.sagemaker_job_name": ("muster", "the toolkit shows it to the ranks"),
    "HyperParameters.sagemaker_region": ("muster", "the toolkit fetches the code there"),
    "HyperParameters.sagemaker_": ("spec.sagemaker.distribution", "how the toolkit starts the ranks"),
    "HyperParameters.mp_parameters": ("spec.sagemaker.distribution", "for the model parallel library"),
    "HyperParameters.model_dir": ("spec.sagemaker.framework.modelDir", "where TensorFlow keeps the model"),
    "HyperParameters": ("spec.hyperparameters", "yours, as text"),
    "Environment": ("spec.env", "yours"),
}
_DATA = {
    "AlgorithmSpecification.TrainingInputMode": ("spec.sagemaker.inputMode", "the default input mode of channels"),
    "InputDataConfig[code]": ("spec.source", "the code, if the containers don't download it"),
    "InputDataConfig[sm_drivers]": ("spec.sagemaker.start", "muster's start script, in the same way as ModelTrainer's"),
    "InputDataConfig": ("spec.inputs", "a channel"),
    "OutputDataConfig.S3OutputPath": ("spec.output.s3", "the location of the model"),
    "OutputDataConfig.KmsKeyId": ("spec.sagemaker.outputKmsKey", "what encrypts it"),
    "OutputDataConfig.CompressionType": ("spec.sagemaker.outputCompression", "how it is compressed"),
    "CheckpointConfig.LocalPath": ("spec.sagemaker.checkpointPath", "the ranks' folder for checkpoints"),
    "CheckpointConfig": ("spec.checkpoint.s3", "the location of checkpoints while the job runs"),
}
_INSTANCES = {
    "ResourceConfig.InstanceCount": ("spec.nodes", "an instance a node"),
    "ResourceConfig.InstanceType": ("spec.sagemaker.instanceType", "the type of each node"),
    "ResourceConfig.InstanceGroups": ("spec.sagemaker.instanceGroups", "nodes of several types"),
    "ResourceConfig.VolumeSizeInGB": ("spec.sagemaker.volumeSizeGb", "each instance's disk"),
    "ResourceConfig.VolumeKmsKeyId": ("spec.sagemaker.volumeKmsKey", "what encrypts the disks"),
    "ResourceConfig.KeepAlive": ("spec.sagemaker.keepAliveSeconds", "the warm pool for the next job"),
    "ResourceConfig.TrainingPlanArn": ("spec.sagemaker.trainingPlanArn", "the training plan that has the instances"),
    "ResourceConfig.InstancePlacement": ("spec.sagemaker.placement", "how they are placed on UltraServers"),
    "StoppingCondition.MaxRuntime": ("spec.sagemaker.maxRunSeconds", "SageMaker stops the job after this time"),
    "StoppingCondition.MaxWait": ("spec.sagemaker.spot", "including the time waiting for spot instances"),
    "StoppingCondition.MaxPending": ("spec.sagemaker.maxPendingSeconds", "how long to wait for instances"),
    "EnableManagedSpotTraining": ("spec.sagemaker.spot", "cheaper instances that AWS may reclaim"),
    "RetryStrategy": ("spec.sagemaker.retry", "after SageMaker's internal errors"),
    "VpcConfig": ("spec.sagemaker.vpc", "your network"),
    "EnableInterContainer": ("spec.sagemaker.encryptInterContainerTraffic", "between the nodes"),
    "EnableNetworkIsolation": ("spec.sagemaker.networkIsolation", "no network for the ranks"),
    "RemoteDebugConfig": ("spec.sagemaker.remoteDebug", "whether users may connect to the containers"),
    "InfraCheckConfig": ("spec.sagemaker.infraCheck", "whether SageMaker checks the instances first"),
    "SessionChainingConfig": ("spec.sagemaker.sessionTagChaining", "whether sessions pass their tags on"),
}
_DEBUGGING = {
    "DebugHookConfig": ("spec.sagemaker.debugger", "SageMaker Debugger saves tensors"),
    "DebugRuleConfigurations": ("spec.sagemaker.debugger.rules", "rules that watch the tensors"),
    "ProfilerConfig": ("spec.sagemaker.profiler", "how the instances are used"),
    "ProfilerRuleConfigurations": ("spec.sagemaker.profiler.rules", "rules that watch the profile"),
    "TensorBoardOutputConfig": ("spec.sagemaker.tensorBoard", "TensorBoard's data"),
}

_ORIGINS = tuple(
    (beginning, Origin(group, source, why))
    for group, rows in zip(GROUPS, (_JOB, _IMAGE, _TOOLKIT, _DATA, _INSTANCES, _DEBUGGING), strict=True)
    for beginning, (source, why) in rows.items()
)


def find_origin(setting: str) -> Origin:
    """Return the origin of the request's field `setting`, by the first matching prefix."""
    return next(entry for beginning, entry in _ORIGINS if setting.startswith(beginning))
