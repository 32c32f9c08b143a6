"""Convert an SDK 2 estimator and its `fit` to a job. Pure.

The source is sagemaker 2.257.7: estimator.py, job.py, session.py.
"""

from __future__ import annotations

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments, Problems, describe_value, set_field
from muster.importers.sagemaker.translate.distribution import convert_distribution
from muster.importers.sagemaker.translate.entry_point import EntryPoint, convert_entry_point
from muster.importers.sagemaker.translate.estimator.channels import (
    convert_inputs,
    convert_model_channel,
    find_default_input_mode,
)
from muster.importers.sagemaker.translate.estimator.debugging import convert_debugging, remove_dropped_settings
from muster.importers.sagemaker.translate.hyperparameters import Encoding, Hyperparameters, convert_hyperparameters
from muster.importers.sagemaker.translate.instances import (
    convert_instances,
    convert_limits,
    convert_network,
    convert_nodes,
    convert_switches,
    convert_tags,
)
from muster.importers.sagemaker.translate.recording import EstimatorFit
from muster.importers.sagemaker.translate.translation import AccountOptions, TranslatedJob

_DEFAULT_LOG_LEVEL = 20

_EXPERIMENT = {
    "ExperimentName": "experimentName",
    "TrialName": "trialName",
    "TrialComponentDisplayName": "trialComponentDisplayName",
    "RunName": "runName",
}


def translate_estimator(fit: EstimatorFit, account: AccountOptions, problems: Problems) -> TranslatedJob:
    """Return the job that equals the SDK's request. Add arguments that a job can't express to `problems`."""
    arguments = Arguments(f"{fit.class_name}({{}}=...)", fit.arguments, problems)
    call = Arguments("fit({}=...)", fit.call, problems)
    entry_point = convert_entry_point(fit.class_name, arguments)
    hyperparameters = _convert_hyperparameters(fit, entry_point, problems)
    count, node_type = convert_nodes(arguments)
    sagemaker_fields: dict[str, JSON] = {**entry_point.sagemaker_fields, **node_type}
    launcher_settings = convert_distribution(arguments, sagemaker_fields, entry_point.image)
    set_field(sagemaker_fields, "region", fit.session.region or account.region)
    set_field(sagemaker_fields, "role", account.find_role_arn(arguments))
    set_field(sagemaker_fields, "distribution", launcher_settings.toolkit)
    set_field(sagemaker_fields, "rawHyperparameters", hyperparameters.raw_texts)
    spec: dict[str, JSON] = {
        "backend": "SageMaker",
        "launcher": launcher_settings.launcher,
        "command": list(entry_point.command),
    }
    set_field(spec, "nodes", count)
    set_field(spec, "procsPerNode", launcher_settings.procs_per_node)
    set_field(spec, "image", entry_point.image)
    set_field(spec, "hyperparameters", hyperparameters.values)
    spec.update(_convert_portable_fields(arguments))
    set_field(spec, "inputs", [*convert_inputs(call), *convert_model_channel(arguments)])
    set_field(spec, "output", _convert_output(fit, arguments))
    spec["sagemaker"] = remove_dropped_settings(
        fit.class_name, {**sagemaker_fields, **_convert_block(fit, arguments, call)}, problems
    )
    base_name, name = arguments.take_text("base_job_name"), call.take_text("job_name")
    call.report_unread()
    arguments.report_unread()
    return TranslatedJob(name or base_name or "", spec, entry_point.code)


def _convert_hyperparameters(fit: EstimatorFit, entry_point: EntryPoint, problems: Problems) -> Hyperparameters:
    is_framework = fit.class_name != "Estimator"
    # The generic estimator encodes values as JSON only if it has a source_dir (Estimator.set_hyperparameters).
    sdk_encoding: Encoding = "Json" if is_framework or fit.arguments.get("source_dir") is not None else "Str"
    muster_encoding: Encoding = "Json" if entry_point.uses_toolkit else "Str"
    return convert_hyperparameters(
        fit.hyperparameters, sdk_encoding, muster_encoding, f"{fit.class_name}(hyperparameters=...)", problems
    )


def _convert_portable_fields(arguments: Arguments) -> dict[str, JSON]:
    """Convert the environment, the metrics and the checkpoint folder."""
    fields: dict[str, JSON] = {}
    environment = arguments.take_text_map("environment")
    set_field(fields, "env", [{"name": name, "value": value} for name, value in environment.items()])
    set_field(fields, "metrics", _convert_metrics(arguments))
    checkpoint = arguments.take_text("checkpoint_s3_uri")
    set_field(fields, "checkpoint", {"s3": checkpoint} if checkpoint else None)
    return fields


def _convert_metrics(arguments: Arguments) -> list[JSON]:
    metrics: list[JSON] = []
    for definition in arguments.take_list("metric_definitions"):
        match definition:
            case {"Name": str(name), "Regex": str(regex), **others} if not others:
                metrics.append({"name": name, "regex": regex})
            case _:
                location = arguments.describe_argument("metric_definitions")
                arguments.problems.add(
                    location, f"found {describe_value(definition)}; a dictionary with Name and Regex is expected"
                )
    return metrics


def _convert_output(fit: EstimatorFit, arguments: Arguments) -> JSON:
    """Return the script's output folder, or the root of the session's default bucket."""
    value, bucket = arguments.take_text("output_path"), fit.session.bucket
    if value:
        return {"s3": value}
    if fit.session.prefix is not None:
        location = "Session(default_bucket_prefix=...)"
        arguments.problems.add(
            location, "the SDK uses different folders below the prefix for code and output; set output_path"
        )
    return {"s3": f"s3://{bucket}/"} if bucket is not None else None


def _convert_block(fit: EstimatorFit, arguments: Arguments, call: Arguments) -> dict[str, JSON]:
    """Convert the fields of `spec.sagemaker`, except the fields about the start of the ranks."""
    sagemaker_fields = {
        **convert_instances(arguments),
        **convert_limits(arguments),
        **convert_network(arguments),
        **convert_switches(arguments),
    }
    sagemaker_fields.update(convert_debugging(arguments))
    estimator_mode = arguments.take_text("input_mode")
    mode = find_default_input_mode(fit.call.get("inputs")) or estimator_mode
    set_field(sagemaker_fields, "inputMode", mode if mode != "File" else None)
    set_field(sagemaker_fields, "outputKmsKey", arguments.take_text("output_kms_key"))
    set_field(
        sagemaker_fields, "outputCompression", "None" if arguments.take_boolean("disable_output_compression") else None
    )
    set_field(sagemaker_fields, "codeLocation", arguments.take_text("code_location"))
    level = arguments.take_integer("container_log_level")
    set_field(sagemaker_fields, "containerLogLevel", level if level != _DEFAULT_LOG_LEVEL else None)
    set_field(sagemaker_fields, "checkpointPath", _convert_checkpoint_path(fit, arguments))
    set_field(sagemaker_fields, "tags", convert_tags(arguments))
    set_field(sagemaker_fields, "experiment", _convert_experiment(call))
    set_field(sagemaker_fields, "imageRepository", _convert_repository(arguments))
    return sagemaker_fields


def _convert_checkpoint_path(fit: EstimatorFit, arguments: Arguments) -> str | None:
    path = arguments.take_text("checkpoint_local_path")
    if path is not None and not fit.arguments.get("checkpoint_s3_uri"):
        location = arguments.describe_argument("checkpoint_local_path")
        arguments.problems.warn(location, "muster ignores this without checkpoint_s3_uri, as the SDK does")
        return None
    return path


def _convert_experiment(call: Arguments) -> JSON:
    value = call.take_text_map("experiment_config")
    for name in value.keys() - _EXPERIMENT.keys():
        call.problems.add(
            call.describe_argument("experiment_config"), f"found {name}; allowed are {', '.join(_EXPERIMENT)}"
        )
    return {field: value[name] for name, field in _EXPERIMENT.items() if name in value}


def _convert_repository(arguments: Arguments) -> JSON:
    access = arguments.take_text("training_repository_access_mode")
    provider = arguments.take_text("training_repository_credentials_provider_arn")
    if access is None:
        return None
    repository: dict[str, JSON] = {"access": access}
    set_field(repository, "credentialsProviderArn", provider)
    return repository
