"""Where each field of a CreateTrainingJob request comes from in a job, and what it is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """`source` is a field of the job, or `muster`; `why` says what the request's field is for."""

    group: str
    source: str
    why: str


GROUPS = ("Job", "Image", "Toolkit", "Data", "Instances", "Debugging")

_JOB = {
    "TrainingJobName": ("muster", "the same for the same attempt: a second request finds the first"),
    "RoleArn": ("spec.sagemaker.role", "the training job works as it"),
    "Tags[muster.dev/": ("muster", "by it muster knows its training job again"),
    "Tags": ("spec.sagemaker.tags", "yours"),
    "ExperimentConfig": ("spec.sagemaker.experiment", "the training job becomes a part of it"),
}
_IMAGE = {
    "AlgorithmSpecification.TrainingImageConfig": ("spec.sagemaker.imageRepository", "where the image comes from"),
    "AlgorithmSpecification.TrainingImage": ("spec.sagemaker.framework", "SageMaker's image of it in that region"),
    "AlgorithmSpecification.Container": ("spec.command", "what the container starts"),
    "AlgorithmSpecification.MetricDefinitions": ("spec.metrics", "SageMaker reads them from the log"),
    "AlgorithmSpecification.EnableSageMakerMetrics": ("spec.sagemaker.metricsTimeSeries", "metrics as time series"),
}
_TOOLKIT = {
    "HyperParameters.sagemaker_submit_directory": ("spec.source", "the toolkit unpacks it"),
    "HyperParameters.sagemaker_program": ("spec.command", "the toolkit starts it"),
    "HyperParameters.sagemaker_container_log_level": ("spec.sagemaker.containerLogLevel", "how much the toolkit says"),
    "HyperParameters.sagemaker_job_name": ("muster", "the toolkit shows it to the ranks"),
    "HyperParameters.sagemaker_region": ("muster", "the toolkit fetches the code there"),
    "HyperParameters.sagemaker_": ("spec.sagemaker.distribution", "how the toolkit starts the ranks"),
    "HyperParameters.mp_parameters": ("spec.sagemaker.distribution", "for the model parallel library"),
    "HyperParameters.model_dir": ("spec.sagemaker.framework.modelDir", "where TensorFlow keeps the model"),
    "HyperParameters": ("spec.hyperparameters", "yours, as text"),
    "Environment": ("spec.env", "yours"),
}
_DATA = {
    "AlgorithmSpecification.TrainingInputMode": ("spec.sagemaker.inputMode", "how channels reach the ranks"),
    "InputDataConfig[code]": ("spec.source", "the code, where the containers don't fetch it"),
    "InputDataConfig[sm_drivers]": ("spec.sagemaker.start", "muster's start script, as ModelTrainer's comes"),
    "InputDataConfig": ("spec.inputs", "a channel"),
    "OutputDataConfig.S3OutputPath": ("spec.output.s3", "where the model is kept"),
    "OutputDataConfig.KmsKeyId": ("spec.sagemaker.outputKmsKey", "what encrypts it"),
    "OutputDataConfig.CompressionType": ("spec.sagemaker.outputCompression", "how it is packed"),
    "CheckpointConfig.LocalPath": ("spec.sagemaker.checkpointPath", "where the ranks keep snapshots"),
    "CheckpointConfig": ("spec.checkpoint.s3", "where snapshots are kept while the job runs"),
}
_INSTANCES = {
    "ResourceConfig.InstanceCount": ("spec.nodes", "an instance a node"),
    "ResourceConfig.InstanceType": ("spec.sagemaker.instanceType", "what each node is"),
    "ResourceConfig.InstanceGroups": ("spec.sagemaker.instanceGroups", "nodes of several types"),
    "ResourceConfig.VolumeSizeInGB": ("spec.sagemaker.volumeSizeGb", "each instance's disk"),
    "ResourceConfig.VolumeKmsKeyId": ("spec.sagemaker.volumeKmsKey", "what encrypts the disks"),
    "ResourceConfig.KeepAlive": ("spec.sagemaker.keepAliveSeconds", "the warm pool for the next job"),
    "ResourceConfig.TrainingPlanArn": ("spec.sagemaker.trainingPlanArn", "whose instances they are"),
    "ResourceConfig.InstancePlacement": ("spec.sagemaker.placement", "how they lie on UltraServers"),
    "StoppingCondition.MaxRuntime": ("spec.sagemaker.maxRunSeconds", "SageMaker stops what takes longer"),
    "StoppingCondition.MaxWait": ("spec.sagemaker.spot", "with all the waiting for spot instances"),
    "StoppingCondition.MaxPending": ("spec.sagemaker.maxPendingSeconds", "how long to wait for instances"),
    "EnableManagedSpotTraining": ("spec.sagemaker.spot", "cheaper instances, taken away at times"),
    "RetryStrategy": ("spec.sagemaker.retry", "after SageMaker's internal errors"),
    "VpcConfig": ("spec.sagemaker.vpc", "your network"),
    "EnableInterContainer": ("spec.sagemaker.encryptInterContainerTraffic", "between the nodes"),
    "EnableNetworkIsolation": ("spec.sagemaker.networkIsolation", "no network for the ranks"),
    "RemoteDebugConfig": ("spec.sagemaker.remoteDebug", "whether one may connect to the containers"),
    "InfraCheckConfig": ("spec.sagemaker.infraCheck", "whether the instances are checked first"),
    "SessionChainingConfig": ("spec.sagemaker.sessionTagChaining", "whether sessions pass their tags on"),
}
_DEBUGGING = {
    "DebugHookConfig": ("spec.sagemaker.debugger", "SageMaker Debugger saves tensors"),
    "DebugRuleConfigurations": ("spec.sagemaker.debugger.rules", "what watches the tensors"),
    "ProfilerConfig": ("spec.sagemaker.profiler", "how the instances are used"),
    "ProfilerRuleConfigurations": ("spec.sagemaker.profiler.rules", "what watches the profile"),
    "TensorBoardOutputConfig": ("spec.sagemaker.tensorBoard", "TensorBoard's data"),
}

_ORIGINS = tuple(
    (beginning, Origin(group, source, why))
    for group, rows in zip(GROUPS, (_JOB, _IMAGE, _TOOLKIT, _DATA, _INSTANCES, _DEBUGGING), strict=True)
    for beginning, (source, why) in rows.items()
)


def origin(setting: str) -> Origin:
    """The origin of the request's field `setting`: the first whose beginning fits. Every field has one."""
    return next(found for beginning, found in _ORIGINS if setting.startswith(beginning))
