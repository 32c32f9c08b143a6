"""Convert an SDK 3 ModelTrainer and its `train` to a job. Pure.

The source is SDK 3.27.0: sagemaker/train/model_trainer.py, defaults.py, distributed.py.
"""

from __future__ import annotations

import re

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import (
    Arguments,
    Problems,
    describe_value,
    read_object,
    set_field,
)
from muster.importers.sagemaker.translate.hyperparameters import Hyperparameters, convert_hyperparameters
from muster.importers.sagemaker.translate.recording import TrainerRun, Value
from muster.importers.sagemaker.translate.trainer.channels import convert_channels
from muster.importers.sagemaker.translate.trainer.code import StartSettings, convert_start
from muster.importers.sagemaker.translate.trainer.instances import (
    convert_instances,
    convert_limits,
    convert_network,
    convert_nodes,
)
from muster.importers.sagemaker.translate.translation import AccountOptions, TranslatedJob

_COMPRESSION = {"GZIP": "Gzip", "NONE": "None", None: "Gzip"}
_ENABLED: dict[bool | None, str | None] = {True: "Enabled", False: "Disabled", None: None}
_CHECKPOINT_PATH = "/opt/ml/checkpoints"
"""The SDK's default of CheckpointConfig.local_path."""

_REPOSITORY = re.compile(r"^(?:.*/)?(?P<name>[^:/@]+)")


def translate_trainer(run: TrainerRun, account: AccountOptions, problems: Problems) -> TranslatedJob:
    """Return the job that equals the SDK's request. Add arguments that a job can't express to `problems`."""
    arguments = Arguments("ModelTrainer({}=...)", run.arguments, problems)
    call = Arguments("train({}=...)", run.call, problems)
    image = arguments.take_text("training_image")
    base = arguments.take_text("base_job_name") or _choose_base_name(image)
    start = convert_start(arguments)
    hyperparameters = _convert_hyperparameters(arguments, start, problems)
    compute = arguments.take_object("compute", "Compute") or Arguments("Compute({}=...)", {}, problems)
    count, node_type = convert_nodes(compute)
    sagemaker_fields: dict[str, JSON] = {**start.sagemaker_fields, **node_type}
    set_field(sagemaker_fields, "region", run.session.region or account.region)
    set_field(sagemaker_fields, "role", account.find_role_arn(arguments))
    set_field(sagemaker_fields, "rawHyperparameters", {**hyperparameters.raw_texts, **start.raw_hyperparameters})
    spec: dict[str, JSON] = {"backend": "SageMaker", "launcher": start.launcher, "command": list(start.command)}
    set_field(spec, "nodes", count)
    set_field(spec, "procsPerNode", start.procs_per_node)
    set_field(spec, "image", image)
    set_field(spec, "hyperparameters", hyperparameters.values)
    set_field(
        spec, "env", [{"name": name, "value": text} for name, text in arguments.take_text_map("environment").items()]
    )
    set_field(spec, "metrics", _convert_metrics(arguments))
    set_field(spec, "inputs", convert_channels(arguments, call))
    bucket = _build_default_bucket_uri(run, account, base, arguments)
    spec["output"] = {"s3": _convert_output(arguments, bucket, base, sagemaker_fields)}
    set_field(spec, "checkpoint", _convert_checkpoint(arguments, sagemaker_fields))
    sagemaker_fields.update(
        {
            **convert_instances(compute),
            **convert_limits(arguments, compute),
            **convert_network(arguments),
            **_convert_switches(arguments, f"{bucket}/{base}"),
        }
    )
    set_field(sagemaker_fields, "codeLocation", _find_code_location(arguments, start, bucket, base))
    spec["sagemaker"] = sagemaker_fields
    _report_unread(compute, call, arguments)
    return TranslatedJob(base, spec, start.code)


def _report_unread(*argument_groups: Arguments) -> None:
    for arguments in argument_groups:
        arguments.report_unread()


def _choose_base_name(image: str | None) -> str:
    match = _REPOSITORY.match(image or "")
    return f"{match['name']}-job" if match else "job"


def _convert_hyperparameters(arguments: Arguments, start: StartSettings, problems: Problems) -> Hyperparameters:
    value = arguments.take_value("hyperparameters")
    location = arguments.describe_argument("hyperparameters")
    if isinstance(value, str):
        problems.add(location, f"found {describe_value(value)}; write the file's content as a dictionary")
        value = None
    values = value if isinstance(value, dict) else {}
    # The SDK passes no hyperparameters to a command, but muster would append values to it on other backends.
    return convert_hyperparameters(values, "Bare", start.encoding, location, problems)


def _convert_metrics(arguments: Arguments) -> list[JSON]:
    metrics: list[JSON] = []
    for value in arguments.take_list("metric_definitions"):
        settings = read_object(arguments, "metric_definitions", value, "MetricDefinition")
        if settings is not None:
            metrics.append({"name": settings.take_text("name"), "regex": settings.take_text("regex")})
    return metrics


def _build_default_bucket_uri(run: TrainerRun, account: AccountOptions, base: str, arguments: Arguments) -> str:
    """Return the URI of the SDK's default bucket and prefix for code and output."""
    bucket, region = run.session.bucket, run.session.region or account.region
    if bucket is None and (account.account is None or region is None):
        location = arguments.describe_argument("output_data_config")
        arguments.problems.add(
            location,
            "the name of the SDK's default bucket needs region and account: set --aws-region and --aws-account",
        )
        return f"s3://bucket/{base}"
    prefix = f"/{run.session.prefix}" if run.session.prefix else ""
    return f"s3://{bucket or f'sagemaker-{region}-{account.account}'}{prefix}"


def _convert_output(arguments: Arguments, bucket: str, base: str, sagemaker_fields: dict[str, JSON]) -> str:
    config = arguments.take_object("output_data_config", "OutputDataConfig")
    default_uri = f"{bucket}/{base}"
    if config is None:
        sagemaker_fields["outputCompression"] = "Gzip"
        return default_uri
    compression = config.take_text("compression_type")
    if compression not in _COMPRESSION:
        config.problems.add(
            config.describe_argument("compression_type"),
            f"found {describe_value(compression)}; GZIP or NONE is expected",
        )
    sagemaker_fields["outputCompression"] = _COMPRESSION.get(compression)
    set_field(sagemaker_fields, "outputKmsKey", config.take_text("kms_key_id"))
    uri = config.take_text("s3_output_path") or default_uri
    config.report_unread()
    return uri


def _convert_checkpoint(arguments: Arguments, sagemaker_fields: dict[str, JSON]) -> JSON:
    config = arguments.take_object("checkpoint_config", "CheckpointConfig")
    if config is None:
        return None
    uri = config.take_text("s3_uri")
    if uri is None:
        location = config.describe_argument("s3_uri")
        config.problems.add(location, "is missing; set a folder, because the SDK's default changes with each attempt")
    sagemaker_fields["checkpointPath"] = config.take_text("local_path") or _CHECKPOINT_PATH
    return {"s3": uri}


def _convert_switches(arguments: Arguments, default_uri: str) -> dict[str, JSON]:
    """Convert the optional settings. `default_uri` is TensorBoard's default folder.

    Debugger and profiler are off, because SDK 3 never sets them.
    """
    fields: dict[str, JSON] = {"debugger": {"hook": "Disabled"}, "profiler": {"mode": "Unset"}}
    for name, config, argument, field in (
        ("remote_debug_config", "RemoteDebugConfig", "enable_remote_debug", "remoteDebug"),
        ("infra_check_config", "InfraCheckConfig", "enable_infra_check", "infraCheck"),
        ("session_chaining_config", "SessionChainingConfig", "enable_session_tag_chaining", "sessionTagChaining"),
    ):
        settings = arguments.take_object(name, config)
        set_field(fields, field, _ENABLED[settings.take_boolean(argument)] if settings is not None else None)
    tensorboard = arguments.take_object("tensorboard_output_config", "TensorBoardOutputConfig")
    if tensorboard is not None:
        local_path = tensorboard.take_text("local_path") or "/opt/ml/output/tensorboard"
        fields["tensorBoard"] = {"s3": tensorboard.take_text("s3_output_path") or default_uri, "localPath": local_path}
    mode = arguments.take_text("training_input_mode")
    set_field(fields, "inputMode", mode if mode != "File" else None)
    set_field(fields, "tags", _convert_tags(arguments))
    set_field(fields, "imageRepository", _convert_repository(arguments))
    return fields


def _convert_tags(arguments: Arguments) -> dict[str, JSON]:
    tags: dict[str, JSON] = {}
    for value in arguments.take_list("tags"):
        tag: Value = value
        if isinstance(tag, dict):
            key, text = tag.get("key"), tag.get("value")
        else:
            settings = read_object(arguments, "tags", tag, "Tag")
            key, text = (
                (settings.take_text("key"), settings.take_text("value")) if settings is not None else (None, None)
            )
        if isinstance(key, str) and isinstance(text, str):
            tags[key] = text
    return tags


def _convert_repository(arguments: Arguments) -> JSON:
    config = arguments.take_object("training_image_config", "TrainingImageConfig")
    if config is None:
        return None
    repository: dict[str, JSON] = {"access": config.take_text("training_repository_access_mode")}
    credentials = config.take_object("training_repository_auth_config", "TrainingRepositoryAuthConfig")
    if credentials is not None:
        set_field(
            repository, "credentialsProviderArn", credentials.take_text("training_repository_credentials_provider_arn")
        )
    return repository


def _find_code_location(arguments: Arguments, start: StartSettings, bucket: str, base: str) -> str | None:
    prefix = arguments.take_text("input_s3_key_prefix") or base
    # The start script is uploaded there too, even if the image has the code.
    return f"{bucket}/{prefix}" if "start" in start.sagemaker_fields else None
