"""Decide how SageMaker starts a job's ranks: the distribution, the program, and whether muster's start script runs it.

Without `distribution`, the job's launcher decides. If SageMaker's toolkit supports the launcher, muster uses the
toolkit. Otherwise muster adds its start script to the source archive, and the toolkit or the container runs the script
once on each node. Pure.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from muster.api.launchers.base import Launcher
from muster.api.launchers.mpi import Mpi
from muster.api.launchers.torchrun import Torchrun
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.distribution import Distribution, SageMakerMpi, StrategyWithoutSettings
from muster.api.spec.sagemaker.resources import InstanceGroup
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.spec.sagemaker.support import (
    TORCH_DISTRIBUTED_ON_GPU,
    TORCH_DISTRIBUTED_ON_TRAINIUM,
    has_gpus,
    is_trainium,
)

START_SCRIPT = "muster_start.py"

SERVICE_COMMAND = ("train",)
"""The argument that SageMaker passes to an image's entry point.

See "How Amazon SageMaker AI Runs Your Training Image" in the Developer Guide. With this command and the user's own
image, the image starts the ranks.
"""

_PYTHON = re.compile(r"python[0-9.]*")
_FILE = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._+-]*(/[A-Za-z0-9._+-]+)*")
"""A path that the toolkit accepts as its program: sagemaker-training 5.1.4, process.validate_entry_point."""


@dataclass(frozen=True)
class Launch:
    """How the ranks start.

    muster passes `distribution` to the toolkit, unless it is None. `program` is the file of the source archive that
    the toolkit starts; "" without the toolkit. `uses_start_script` is whether muster's start script in the source
    archive runs the command. With Channels, the start script always runs, from its own channel.
    """

    start: Literal["Toolkit", "Container", "Channels"]
    distribution: Distribution | None = None
    program: str = ""
    uses_start_script: bool = False


def decide_launch(spec: Spec) -> Launch:
    """Decide how SageMaker starts the ranks of a job."""
    block = get_sagemaker_block(spec)
    if block.start == "Channels":
        return Launch("Channels")
    if not uses_toolkit(block):
        return Launch("Container", uses_start_script=_container_needs_script(spec, block))
    distribution = choose_distribution(spec)
    file = find_program_file(spec.command, distribution)
    if file is None or _needs_start_script(spec, block, distribution):
        return Launch("Toolkit", distribution, START_SCRIPT, uses_start_script=True)
    return Launch("Toolkit", distribution, file)


def uses_toolkit(block: SageMaker) -> bool:
    """Whether SageMaker's training toolkit runs the command."""
    if block.start == "Auto":
        return block.framework is not None
    return block.start == "Toolkit"


def choose_distribution(spec: Spec) -> Distribution | None:
    """Return the toolkit's distribution: the job's own, else the equivalent of its launcher."""
    block = get_sagemaker_block(spec)
    if block.distribution is not None or block.framework is None:
        return block.distribution
    build_distribution = _TOOLKIT_DISTRIBUTIONS.get(type(spec.launcher.chosen_launcher))
    return None if build_distribution is None else build_distribution(spec, block)


def find_program_file(command: tuple[str, ...], distribution: Distribution | None = None) -> str | None:
    """Return the file that the toolkit can start in place of the command; None if there is none.

    `python train.py` becomes train.py, and ./train.sh becomes train.sh. With mpirun, `python -m mpi4py train.py`
    becomes train.py too, because the toolkit adds mpi4py itself.
    """
    if command[1:3] == ("-m", "mpi4py") and uses_mpirun(distribution):
        command = (command[0], *command[3:])
    words = len(command)
    if words == len(("python", "train.py")) and _PYTHON.fullmatch(posixpath.basename(command[0])):
        return command[1] if command[1].endswith(".py") and _is_file(command[1]) else None
    if words == 1 and command[0].startswith("./"):
        name = command[0].removeprefix("./")
        return name if _is_file(name) and not name.endswith(".py") else None
    return None


def uses_mpirun(distribution: Distribution | None) -> bool:
    """Whether the toolkit starts the ranks with mpirun, for MPI or for SageMaker's data parallel library."""
    if distribution is None:
        return False
    strategies = (distribution.mpi, distribution.data_parallel, distribution.pytorch_ddp)
    return any(strategy is not None and strategy.enabled for strategy in strategies)


def find_torchrun_problem(spec: Spec, block: SageMaker) -> str | None:
    """Return why SageMaker's torchrun can't run the job; None if it can."""
    framework = block.framework
    if framework is None or framework.name == "TensorFlow" or framework.tensorflow_version is not None:
        return "an image that isn't PyTorch's"
    if spec.image is not None:
        return None
    instance_type = get_rank_instance_type(block)
    version = framework.pytorch_version if framework.name == "HuggingFace" else framework.version
    if not has_gpus(instance_type) and not is_trainium(instance_type):
        return f"{instance_type}, which has neither GPUs nor Trainium"
    supported = TORCH_DISTRIBUTED_ON_GPU if has_gpus(instance_type) else TORCH_DISTRIBUTED_ON_TRAINIUM
    return None if version in supported else f"PyTorch {version} on {instance_type}"


def get_explicit_procs_per_node(spec: Spec) -> int | None:
    """Return the number of ranks per node that the user set; None for Auto, even if muster has resolved it."""
    procs = spec.procs_per_node
    return None if isinstance(procs, str) or "procs_per_node" not in spec.model_fields_set else procs


def list_rank_instance_groups(block: SageMaker) -> tuple[InstanceGroup, ...]:
    """Return the instance groups on which the ranks run: the group that the distribution names, or the only group."""
    groups = block.instance_groups
    chosen = block.distribution.instance_group if block.distribution is not None else None
    return groups if len(groups) == 1 else tuple(group for group in groups if group.name == chosen)


def uses_some_instance_groups(block: SageMaker) -> bool:
    """Whether the ranks run on only one of several instance groups."""
    return len(block.instance_groups) > 1 and bool(list_rank_instance_groups(block))


def get_rank_instance_type(block: SageMaker) -> str:
    """Return the type of the ranks' instances; "" if the job has none."""
    if block.instance_type is not None:
        return block.instance_type
    groups = list_rank_instance_groups(block) or block.instance_groups
    return groups[0].instance_type if groups else ""


def _needs_start_script(spec: Spec, block: SageMaker, distribution: Distribution | None) -> bool:
    if block.distribution is not None:
        return False
    return distribution is None and not spec.launcher.chosen_launcher.command_starts_ranks


def _container_needs_script(spec: Spec, block: SageMaker) -> bool:
    if block.container_entrypoint or block.container_arguments:
        return False
    if not spec.launcher.chosen_launcher.command_starts_ranks:
        return True
    # Code in an archive is probably a script for SageMaker, which needs SageMaker's variables.
    return spec.source is not None and spec.command != SERVICE_COMMAND


def _is_file(name: str) -> bool:
    return _FILE.fullmatch(name) is not None and not {".", ".."} & set(name.split("/"))


def _build_mpi_distribution(spec: Spec, _: SageMaker) -> Distribution:
    return Distribution(mpi=SageMakerMpi(custom_mpi_options=shlex.join(spec.launcher.chosen_launcher.list_arguments())))


def _build_torchrun_distribution(spec: Spec, block: SageMaker) -> Distribution | None:
    if spec.launcher.chosen_launcher.list_arguments() or find_torchrun_problem(spec, block) is not None:
        return None
    # The toolkit would start a separate torchrun, with its own world, in each group.
    return Distribution(torch_distributed=StrategyWithoutSettings()) if len(block.instance_groups) <= 1 else None


_TOOLKIT_DISTRIBUTIONS: Mapping[type[Launcher], Callable[[Spec, SageMaker], Distribution | None]] = {
    Mpi: _build_mpi_distribution,
    Torchrun: _build_torchrun_distribution,
}
"""The launchers that SageMaker's toolkit supports, and the distribution that selects each."""
