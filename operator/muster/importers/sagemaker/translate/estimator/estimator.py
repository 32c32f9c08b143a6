"""Convert an SDK 2 estimator and its `fit` to a job. Pure.

The request for each argument is in sagemaker 2.257.7: estimator.py, job.py, session.py.
"""

from __future__ import annotations

from muster.api.document import JSON
from muster.importers.sagemaker.translate.distribution import distributed
from muster.importers.sagemaker.translate.entry import Entry, entry
from muster.importers.sagemaker.translate.estimator.channels import inputs, mode_of_all, model_channel
from muster.importers.sagemaker.translate.estimator.debugging import debugging, without_lost_settings
from muster.importers.sagemaker.translate.hyperparameters import Encoding, Hyperparameters, hyperparameters
from muster.importers.sagemaker.translate.machines import limits, machines, network, nodes, switches, tags
from muster.importers.sagemaker.translate.reading import Arguments, Problems, set_field, shown
from muster.importers.sagemaker.translate.recording import EstimatorFit
from muster.importers.sagemaker.translate.translation import Place, Translated

_DEFAULT_LOG_LEVEL = 20

_EXPERIMENT = {
    "ExperimentName": "experimentName",
    "TrialName": "trialName",
    "TrialComponentDisplayName": "trialComponentDisplayName",
    "RunName": "runName",
}


def translated(fit: EstimatorFit, place: Place, problems: Problems) -> Translated:
    """The job that does what the SDK would have requested; `problems` gets what it can't do."""
    arguments = Arguments(f"{fit.kind}({{}}=...)", fit.arguments, problems)
    call = Arguments("fit({}=...)", fit.call, problems)
    start = entry(fit.kind, arguments)
    sent = _hyperparameters(fit, start, problems)
    count, node_type = nodes(arguments)
    block: dict[str, JSON] = {**start.block, **node_type}
    ranks = distributed(arguments, block, start.image)
    set_field(block, "region", fit.session.region or place.region)
    set_field(block, "role", place.role_arn(arguments))
    set_field(block, "distribution", ranks.toolkit)
    set_field(block, "rawHyperparameters", sent.raw)
    spec: dict[str, JSON] = {"backend": "SageMaker", "launcher": ranks.launcher, "command": list(start.command)}
    set_field(spec, "nodes", count)
    set_field(spec, "procsPerNode", ranks.processes)
    set_field(spec, "image", start.image)
    set_field(spec, "hyperparameters", sent.plain)
    spec.update(_portable(arguments))
    set_field(spec, "inputs", [*inputs(call), *model_channel(arguments)])
    set_field(spec, "output", _output(fit, arguments))
    spec["sagemaker"] = without_lost_settings(fit.kind, {**block, **_block(fit, arguments, call)}, problems)
    base_name, name = arguments.text("base_job_name"), call.text("job_name")
    call.nothing_left("")
    arguments.nothing_left("")
    return Translated(name or base_name or "", spec, start.code)


def _hyperparameters(fit: EstimatorFit, start: Entry, problems: Problems) -> Hyperparameters:
    framework = fit.kind != "Estimator"
    # the generic estimator encodes only if it has a source_dir (estimator.py, Estimator.set_hyperparameters)
    sdk: Encoding = "Json" if framework or fit.arguments.get("source_dir") is not None else "Str"
    muster: Encoding = "Json" if start.by_toolkit else "Str"
    return hyperparameters(fit.hyperparameters, sdk, muster, f"{fit.kind}(hyperparameters=...)", problems)


def _portable(arguments: Arguments) -> dict[str, JSON]:
    """Environment, metrics and checkpoints."""
    fields: dict[str, JSON] = {}
    environment = arguments.text_map("environment")
    set_field(fields, "env", [{"name": name, "value": value} for name, value in environment.items()])
    set_field(fields, "metrics", _metrics(arguments))
    checkpoint = arguments.text("checkpoint_s3_uri")
    set_field(fields, "checkpoint", {"s3": checkpoint} if checkpoint else None)
    return fields


def _metrics(arguments: Arguments) -> list[JSON]:
    metrics: list[JSON] = []
    for definition in arguments.listed("metric_definitions"):
        match definition:
            case {"Name": str(name), "Regex": str(regex), **others} if not others:
                metrics.append({"name": name, "regex": regex})
            case _:
                where = arguments.where("metric_definitions")
                arguments.problems.add(where, f"found {shown(definition)}; a Name and a Regex is expected in each")
    return metrics


def _output(fit: EstimatorFit, arguments: Arguments) -> JSON:
    """The folder that the script names, or the root of its session's default bucket."""
    value, bucket = arguments.text("output_path"), fit.session.bucket
    if value:
        return {"s3": value}
    if fit.session.prefix is not None:
        where = "Session(default_bucket_prefix=...)"
        arguments.problems.add(where, "the SDK puts code and output into different folders below it; set output_path")
    return {"s3": f"s3://{bucket}/"} if bucket is not None else None


def _block(fit: EstimatorFit, arguments: Arguments, call: Arguments) -> dict[str, JSON]:
    """The fields for SageMaker only, except those about the ranks' start."""
    block = {**machines(arguments), **limits(arguments), **network(arguments), **switches(arguments)}
    block.update(debugging(arguments))
    own_mode = arguments.text("input_mode")
    mode = mode_of_all(fit.call.get("inputs")) or own_mode
    set_field(block, "inputMode", mode if mode != "File" else None)
    set_field(block, "outputKmsKey", arguments.text("output_kms_key"))
    set_field(block, "outputCompression", "None" if arguments.truth("disable_output_compression") else None)
    set_field(block, "codeLocation", arguments.text("code_location"))
    level = arguments.whole("container_log_level")
    set_field(block, "containerLogLevel", level if level != _DEFAULT_LOG_LEVEL else None)
    set_field(block, "checkpointPath", _checkpoint_path(fit, arguments))
    set_field(block, "tags", tags(arguments))
    set_field(block, "experiment", _experiment(call))
    set_field(block, "imageRepository", _repository(arguments))
    return block


def _checkpoint_path(fit: EstimatorFit, arguments: Arguments) -> str | None:
    path = arguments.text("checkpoint_local_path")
    if path is not None and not fit.arguments.get("checkpoint_s3_uri"):
        where = arguments.where("checkpoint_local_path")
        arguments.problems.warn(where, "is ignored, as by the SDK: there is no checkpoint_s3_uri")
        return None
    return path


def _experiment(call: Arguments) -> JSON:
    value = call.text_map("experiment_config")
    for name in value.keys() - _EXPERIMENT.keys():
        call.problems.add(call.where("experiment_config"), f"found {name}; known are {', '.join(_EXPERIMENT)}")
    return {field: value[name] for name, field in _EXPERIMENT.items() if name in value}


def _repository(arguments: Arguments) -> JSON:
    access = arguments.text("training_repository_access_mode")
    provider = arguments.text("training_repository_credentials_provider_arn")
    if access is None:
        return None
    repository: dict[str, JSON] = {"access": access}
    set_field(repository, "credentialsProviderArn", provider)
    return repository
