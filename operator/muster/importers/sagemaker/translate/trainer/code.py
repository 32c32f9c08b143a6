"""Convert a ModelTrainer's source to the job's command and code, and its distribution to the launcher. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments, read_object
from muster.importers.sagemaker.translate.entry_point import SERVICE_COMMAND, LocalCode
from muster.importers.sagemaker.translate.hyperparameters import Encoding
from muster.importers.sagemaker.translate.recording import SdkObject

_IGNORE_PATTERNS = (".env", ".git", "__pycache__", ".DS_Store", ".cache", ".ipynb_checkpoints")
"""The default of SourceCode.ignore_patterns (SDK 3.27.0)."""

_REQUIREMENTS = "requirements.txt"
"""The file from which the start script installs packages (render/sagemaker/request/start_script.py)."""

_SMP_FIELDS = (
    *("hybrid_shard_degree", "sm_activation_offloading", "activation_loading_horizon", "fsdp_cache_flush_warnings"),
    *("allow_empty_shards", "tensor_parallel_degree", "context_parallel_degree", "expert_parallel_degree"),
    "random_seed",
)
"""The fields of SMP, in the order of the SDK's request (sagemaker/train/distributed.py)."""


@dataclass(frozen=True)
class StartSettings:
    """How the ranks start. `encoding` is muster's encoding of hyperparameters for this start.

    If it is None, the command gets no hyperparameters as arguments.
    """

    launcher: JSON
    command: tuple[str, ...]
    code: Mapping[str, JSON] | LocalCode | None
    procs_per_node: int | None = None
    encoding: Encoding | None = "Bare"
    sagemaker_fields: Mapping[str, JSON] = field(default_factory=dict)
    raw_hyperparameters: Mapping[str, JSON] = field(default_factory=dict)


def convert_start(arguments: Arguments) -> StartSettings:
    """Convert the trainer's source and distribution."""
    source = arguments.take_object("source_code", "SourceCode")
    if source is None:
        return StartSettings({"perNode": {}}, (SERVICE_COMMAND,), None, encoding="Str")
    folder, script = source.take_text("source_dir"), source.take_text("entry_script")
    command, command_arguments = source.take_text("command"), source.take_list("args")
    requirements = source.take_text("requirements")
    if requirements not in {None, _REQUIREMENTS}:
        source.problems.add(
            source.describe_argument("requirements"),
            f"found {requirements}; rename the file to {_REQUIREMENTS}, which muster installs",
        )
    patterns = [str(pattern) for pattern in source.take_text_list("ignore_patterns")]
    source.report_unread()
    code = _convert_code(folder, script or "", tuple(patterns) or _IGNORE_PATTERNS)
    sagemaker_fields: dict[str, JSON] = {"start": "Channels"}
    if command is not None:
        line = " ".join([*command.split(), *(shlex.quote(str(argument)) for argument in command_arguments)])
        start = StartSettings(
            {"perNode": {}}, ("/bin/bash", "-c", line), code, encoding=None, sagemaker_fields=sagemaker_fields
        )
        return start if script is None else _convert_ignored_distribution(arguments, start)
    if script is None:
        source.problems.add(source.describe_argument("entry_script"), "entry_script or command is required")
        return StartSettings({"perNode": {}}, ("python",), code, sagemaker_fields=sagemaker_fields)
    script_command = ("python", script) if script.endswith(".py") else ("/bin/bash", script)
    return _convert_distribution(
        arguments, StartSettings({"perNode": {}}, script_command, code, sagemaker_fields=sagemaker_fields)
    )


def _convert_ignored_distribution(arguments: Arguments, start: StartSettings) -> StartSettings:
    """Convert the distribution beside a command: the SDK sends its hyperparameters and starts only the command."""
    converted = _convert_distribution(arguments, start)
    if converted is not start:
        location = arguments.describe_argument("distributed")
        arguments.problems.warn(location, "the SDK ignores it beside SourceCode(command=...), so muster skips it")
    return replace(start, raw_hyperparameters=converted.raw_hyperparameters)


def _convert_distribution(arguments: Arguments, start: StartSettings) -> StartSettings:
    value = arguments.take_value("distributed")
    config = read_object(arguments, "distributed", value, "Torchrun", "MPI") if value is not None else None
    if config is None:
        return start
    procs_per_node = config.take_integer("process_count_per_node")
    options = config.take_text_list("mpi_additional_options")
    mpi: JSON = {"args": options} if options else {}
    launcher: JSON = {"mpi": mpi} if isinstance(value, SdkObject) and value.class_name == "MPI" else {"torchrun": {}}
    smp = config.take_object("smp", "SMP")
    raw_hyperparameters: dict[str, JSON] = {}
    if smp is not None:
        values = {name: smp.take_value(name) for name in _SMP_FIELDS}
        raw_hyperparameters["mp_parameters"] = json.dumps(
            {name: value for name, value in values.items() if value is not None}
        )
    config.report_unread()
    return StartSettings(
        launcher,
        start.command,
        start.code,
        procs_per_node,
        sagemaker_fields=start.sagemaker_fields,
        raw_hyperparameters=raw_hyperparameters,
    )


def _convert_code(folder: str | None, script: str, patterns: tuple[str, ...]) -> Mapping[str, JSON] | LocalCode | None:
    if folder is None:
        return None
    if folder.startswith("s3://"):
        return {"s3": {"uri": folder}}
    return LocalCode(script, folder, ignore_patterns=patterns)
