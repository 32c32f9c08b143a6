"""Convert a ModelTrainer's source to the job's command and code, and its distribution to the launcher. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.api.document import JSON
from muster.importers.sagemaker.translate.entry import SERVICE_COMMAND, Folder
from muster.importers.sagemaker.translate.reading import Arguments, inside
from muster.importers.sagemaker.translate.recording import Built

_IGNORED = (".env", ".git", "__pycache__", ".DS_Store", ".cache", ".ipynb_checkpoints")
"""SourceCode.ignore_patterns (SDK 3.27.0)."""

_REQUIREMENTS = "requirements.txt"
"""The file that the start script installs (render/sagemaker/request/start_script.py)."""

_SMP = (
    *("hybrid_shard_degree", "sm_activation_offloading", "activation_loading_horizon", "fsdp_cache_flush_warnings"),
    *("allow_empty_shards", "tensor_parallel_degree", "context_parallel_degree", "expert_parallel_degree"),
    "random_seed",
)
"""SMP's fields in the order of the SDK's request (sagemaker/train/distributed.py)."""


@dataclass(frozen=True)
class Started:
    """`takes_arguments`: the command gets the hyperparameters as arguments; `raw` are additional hyperparameters."""

    launcher: JSON
    command: tuple[str, ...]
    code: Mapping[str, JSON] | Folder | None
    processes: int | None = None
    takes_arguments: bool = True
    block: Mapping[str, JSON] = field(default_factory=dict)
    raw: Mapping[str, JSON] = field(default_factory=dict)


def started(arguments: Arguments) -> Started:
    """Find out what the trainer runs, and how its ranks start."""
    source = arguments.built("source_code", "SourceCode")
    if source is None:
        return Started({"perNode": {}}, (SERVICE_COMMAND,), None)
    folder, script = source.text("source_dir"), source.text("entry_script")
    command, words = source.text("command"), source.listed("args")
    requirements = source.text("requirements")
    if requirements not in {None, _REQUIREMENTS}:
        source.problems.add(
            source.where("requirements"), f"found {requirements}; name it {_REQUIREMENTS}, which muster installs"
        )
    patterns = [str(pattern) for pattern in source.texts("ignore_patterns")]
    source.nothing_left("")
    code = _code(folder, script or "", tuple(patterns) or _IGNORED)
    block: dict[str, JSON] = {"start": "Channels"}
    if command is not None:
        line = " ".join([*command.split(), *(shlex.quote(str(word)) for word in words)])
        # the SDK ignores a distribution if there is a command (_prepare_train_script)
        return Started({"perNode": {}}, ("/bin/bash", "-c", line), code, takes_arguments=False, block=block)
    if script is None:
        source.problems.add(source.where("entry_script"), "entry_script or command is required")
        return Started({"perNode": {}}, ("python",), code, block=block)
    runner = ("python", script) if script.endswith(".py") else ("/bin/bash", script)
    return _distributed(arguments, Started({"perNode": {}}, runner, code, block=block))


def _distributed(arguments: Arguments, alone: Started) -> Started:
    value = arguments.value("distributed")
    config = inside(arguments, "distributed", value, "Torchrun", "MPI") if value is not None else None
    if config is None:
        return alone
    processes = config.whole("process_count_per_node")
    options = config.texts("mpi_additional_options")
    mpi: JSON = {"args": options} if options else {}
    launcher: JSON = {"mpi": mpi} if isinstance(value, Built) and value.kind == "MPI" else {"torchrun": {}}
    smp = config.built("smp", "SMP")
    raw: dict[str, JSON] = {}
    if smp is not None:
        values = {name: smp.value(name) for name in _SMP}
        raw["mp_parameters"] = json.dumps({name: value for name, value in values.items() if value is not None})
    config.nothing_left("")
    return Started(launcher, alone.command, alone.code, processes, block=alone.block, raw=raw)


def _code(folder: str | None, script: str, patterns: tuple[str, ...]) -> Mapping[str, JSON] | Folder | None:
    if folder is None:
        return None
    if folder.startswith("s3://"):
        return {"s3": {"uri": folder}}
    return Folder(script, folder, ignored=patterns)
