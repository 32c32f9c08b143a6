from sagemaker.train import ModelTrainer
from sagemaker.train.configs import (
    Channel,
    CheckpointConfig,
    Compute,
    DataSource,
    InfraCheckConfig,
    InputData,
    InstanceGroup,
    MetricDefinition,
    Networking,
    OutputDataConfig,
    RemoteDebugConfig,
    RetryStrategy,
    S3DataSource,
    SessionChainingConfig,
    ShuffleConfig,
    SourceCode,
    StoppingCondition,
    Tag,
    TensorBoardOutputConfig,
)
from sagemaker.train.distributed import MPI, SMP, Torchrun

IMAGE = "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.0.1-gpu-py310"
ROLE = "arn:aws:iam::111122223333:role/SageMakerRole"
CODE = SourceCode(source_dir="src", entry_script="train.py", requirements="requirements.txt")


def trainer(name: str, **settings: object) -> ModelTrainer:
    return ModelTrainer(training_image=IMAGE, role=ROLE, base_job_name=name, **settings)


def objects(uri: str, **settings: object) -> S3DataSource:
    value = dict(s3_data_type="S3Prefix", s3_data_distribution_type="FullyReplicated")
    return S3DataSource(s3_uri=uri, **{**value, **settings})


def train(trainer: ModelTrainer, inputs: list[object] | None = None) -> None:
    trainer.train(input_data_config=inputs, wait=False, logs=False)


train(
    trainer(
        "settings",
        source_code=CODE,
        compute=Compute(
            instance_type="ml.g5.xlarge", instance_count=2, volume_size_in_gb=100, keep_alive_period_in_seconds=600
        ),
        hyperparameters={"a": 1.0, "b": [1, 2], "c": None, "d": True, "e": "x", "f": {"g": 1}},
        environment={"A": "1"},
        tags=[Tag(key="t", value="v")],
    )
)
train(
    trainer(
        "command",
        source_code=SourceCode(source_dir="src", command="python train.py --x 1", args=["--y", "a b"]),
        hyperparameters={"lr": 0.1},
        compute=Compute(instance_type="ml.g5.xlarge", instance_count=1, enable_managed_spot_training=True),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=3600, max_wait_time_in_seconds=7200),
        checkpoint_config=CheckpointConfig(s3_uri="s3://my-bucket/ck", local_path="/opt/ml/ck"),
    )
)
train(
    trainer(
        "torchrun",
        source_code=CODE,
        distributed=Torchrun(
            process_count_per_node=4, smp=SMP(tensor_parallel_degree=2, random_seed=1, sm_activation_offloading=True)
        ),
        compute=Compute(instance_type="ml.p4d.24xlarge", instance_count=2),
        networking=Networking(
            subnets=["subnet-1"],
            security_group_ids=["sg-1"],
            enable_network_isolation=True,
            enable_inter_container_traffic_encryption=True,
        ),
        output_data_config=OutputDataConfig(
            s3_output_path="s3://my-bucket/out", compression_type="NONE", kms_key_id="k"
        ),
        training_input_mode="FastFile",
    )
)
train(
    trainer("channels", source_code=CODE, input_s3_key_prefix="team/x")
    .with_retry_strategy(RetryStrategy(maximum_retry_attempts=3))
    .with_remote_debug_config(RemoteDebugConfig(enable_remote_debug=True))
    .with_infra_check_config(InfraCheckConfig(enable_infra_check=True))
    .with_session_chaining_config(SessionChainingConfig(enable_session_tag_chaining=True))
    .with_metric_definitions([MetricDefinition(name="loss", regex="loss=(.*)")])
    .with_tensorboard_output_config(TensorBoardOutputConfig(s3_output_path="s3://my-bucket/tb")),
    [
        InputData(channel_name="a", data_source="s3://my-bucket/a", content_type="text/csv"),
        InputData(
            channel_name="b", data_source=objects("s3://my-bucket/b", s3_data_distribution_type="ShardedByS3Key")
        ),
        Channel(
            channel_name="c",
            data_source=DataSource(s3_data_source=objects("s3://my-bucket/c", s3_data_type="ManifestFile")),
            input_mode="FastFile",
            compression_type="Gzip",
            shuffle_config=ShuffleConfig(seed=3),
        ),
    ],
)
train(
    trainer(
        "groups",
        source_code=CODE,
        distributed=MPI(process_count_per_node=2, mpi_additional_options=["-x", "A=1"]),
        compute=Compute(
            instance_groups=[
                InstanceGroup(instance_group_name="g1", instance_type="ml.p4d.24xlarge", instance_count=2),
                InstanceGroup(instance_group_name="g2", instance_type="ml.c5.xlarge", instance_count=1),
            ]
        ),
    ),
    [InputData(channel_name="a", data_source=objects("s3://my-bucket/a", instance_group_names=["g1"]))],
)
train(trainer("shell", source_code=SourceCode(source_dir="src", entry_script="run.sh")))
