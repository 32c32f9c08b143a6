"""The source and the purpose of each field of a CreateTrainingJob request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """The origin of a request's field. `source` is a field of the job, or `muster`; `reason` is the field's purpose."""

    group: str
    source: str
    reason: str


GROUPS = ("Job", "Image", "Toolkit", "Data", "Instances", "Debugging")

_JOB = {
    "TrainingJobName": ("muster", "the same for each request of an attempt, so that SageMaker rejects a second one"),
    "RoleArn": ("spec.sagemaker.role", "the training job's role"),
    "Tags[muster.dev/": ("muster", "muster recognizes its training jobs by this tag"),
    "Tags": ("spec.sagemaker.tags", "yours"),
    "ExperimentConfig": ("spec.sagemaker.experiment", "the training job's experiment"),
}
_IMAGE = {
    "AlgorithmSpecification.TrainingImageConfig": ("spec.sagemaker.imageRepository", "the registry of the image"),
    "AlgorithmSpecification.TrainingImage": ("spec.sagemaker.framework", "SageMaker's image in the region"),
    "AlgorithmSpecification.Container": ("spec.command", "the command of the container"),
    "AlgorithmSpecification.MetricDefinitions": ("spec.metrics", "SageMaker reads the metrics from the log"),
    "AlgorithmSpecification.EnableSageMakerMetrics": ("spec.sagemaker.metricsTimeSeries", "metrics as time series"),
}
_TOOLKIT = {
    "HyperParameters.sagemaker_submit_directory": ("spec.source", "the toolkit unpacks this archive"),
    "HyperParameters.sagemaker_program": ("spec.command", "the toolkit starts this program"),
    "HyperParameters.sagemaker_container_log_level": ("spec.sagemaker.containerLogLevel", "the toolkit's log level"),
    "HyperParameters.sagemaker_job_name": ("muster", "the toolkit passes the name to the ranks"),
    "HyperParameters.sagemaker_region": ("muster", "the toolkit fetches the code there"),
    "HyperParameters.sagemaker_": ("spec.sagemaker.distribution", "how the toolkit starts the ranks"),
    "HyperParameters.mp_parameters": ("spec.sagemaker.distribution", "for the model parallel library"),
    "HyperParameters.model_dir": ("spec.sagemaker.framework.modelDir", "TensorFlow's folder for the model"),
    "HyperParameters": ("spec.hyperparameters", "yours, as text"),
    "Environment": ("spec.env", "yours"),
}
_DATA = {
    "AlgorithmSpecification.TrainingInputMode": ("spec.sagemaker.inputMode", "the default input mode of channels"),
    "InputDataConfig[code]": ("spec.source", "the code, if the containers don't download it"),
    "InputDataConfig[sm_drivers]": ("spec.sagemaker.start", "muster's start script, in the same way as ModelTrainer's"),
    "InputDataConfig": ("spec.inputs", "a channel"),
    "OutputDataConfig.S3OutputPath": ("spec.output.s3", "the location of the model"),
    "OutputDataConfig.KmsKeyId": ("spec.sagemaker.outputKmsKey", "the key that encrypts the output"),
    "OutputDataConfig.CompressionType": ("spec.sagemaker.outputCompression", "the compression of the output"),
    "CheckpointConfig.LocalPath": ("spec.sagemaker.checkpointPath", "the ranks' folder for checkpoints"),
    "CheckpointConfig": ("spec.checkpoint.s3", "the location of checkpoints while the job runs"),
}
_INSTANCES = {
    "ResourceConfig.InstanceCount": ("spec.nodes", "one instance for each node"),
    "ResourceConfig.InstanceType": ("spec.sagemaker.instanceType", "the type of each node"),
    "ResourceConfig.InstanceGroups": ("spec.sagemaker.instanceGroups", "nodes of several types"),
    "ResourceConfig.VolumeSizeInGB": ("spec.sagemaker.volumeSizeGb", "each instance's disk"),
    "ResourceConfig.VolumeKmsKeyId": ("spec.sagemaker.volumeKmsKey", "the key that encrypts the disks"),
    "ResourceConfig.KeepAlive": ("spec.sagemaker.keepAliveSeconds", "the warm pool for the next job"),
    "ResourceConfig.TrainingPlanArn": ("spec.sagemaker.trainingPlanArn", "the training plan that has the instances"),
    "ResourceConfig.InstancePlacement": ("spec.sagemaker.placement", "the placement of the instances on UltraServers"),
    "StoppingCondition.MaxRuntime": ("spec.sagemaker.maxRunSeconds", "SageMaker stops the job after this time"),
    "StoppingCondition.MaxWait": ("spec.sagemaker.spot", "including the time waiting for spot instances"),
    "StoppingCondition.MaxPending": ("spec.sagemaker.maxPendingSeconds", "how long to wait for instances"),
    "EnableManagedSpotTraining": ("spec.sagemaker.spot", "cheaper instances that AWS may reclaim"),
    "RetryStrategy": ("spec.sagemaker.retry", "SageMaker's retries after its internal errors"),
    "VpcConfig": ("spec.sagemaker.vpc", "your network"),
    "EnableInterContainer": ("spec.sagemaker.encryptInterContainerTraffic", "encrypts the traffic between the nodes"),
    "EnableNetworkIsolation": ("spec.sagemaker.networkIsolation", "blocks the ranks' network"),
    "RemoteDebugConfig": ("spec.sagemaker.remoteDebug", "whether users may connect to the containers"),
    "InfraCheckConfig": ("spec.sagemaker.infraCheck", "whether SageMaker checks the instances before the training"),
    "SessionChainingConfig": ("spec.sagemaker.sessionTagChaining", "whether SageMaker passes session tags on"),
}
_DEBUGGING = {
    "DebugHookConfig": ("spec.sagemaker.debugger", "SageMaker Debugger saves tensors"),
    "DebugRuleConfigurations": ("spec.sagemaker.debugger.rules", "rules that watch the tensors"),
    "ProfilerConfig": ("spec.sagemaker.profiler", "the instances' utilization"),
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
