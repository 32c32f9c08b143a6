"""How SageMaker starts a job's ranks: the toolkit's distribution, the program, and whether muster's start script runs.

Without `distribution`, the portable launcher decides. If SageMaker's toolkit can do what the launcher asks for, muster
uses the toolkit. Otherwise muster adds its start script to the source archive, and the toolkit or the container runs
the script once a node. Pure.
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
from muster.api.spec.sagemaker.block import block_of
from muster.api.spec.sagemaker.distribution import Distribution, SageMakerMpi, Switch
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

    `distribution` is what muster passes to the toolkit, None for nothing. `program` is the file of the source archive
    that the toolkit starts, "" if the container starts by itself. `by_script` says that muster's start script, a file
    of the source archive, runs the command; with Channels it always does, and the script comes in its own channel.
    """

    start: Literal["Toolkit", "Container", "Channels"]
    distribution: Distribution | None = None
    program: str = ""
    by_script: bool = False


def launch(spec: Spec) -> Launch:
    """Decide how SageMaker starts the ranks of a job."""
    block = block_of(spec)
    if block.start == "Channels":
        return Launch("Channels")
    if not uses_toolkit(block):
        return Launch("Container", by_script=_container_needs_script(spec, block))
    distribution = distribution_of(spec)
    file = program_file(spec.command, distribution)
    if file is None or _by_script(spec, block, distribution):
        return Launch("Toolkit", distribution, START_SCRIPT, by_script=True)
    return Launch("Toolkit", distribution, file)


def uses_toolkit(block: SageMaker) -> bool:
    """Whether SageMaker's training toolkit runs the command."""
    if block.start == "Auto":
        return block.framework is not None
    return block.start == "Toolkit"


def distribution_of(spec: Spec) -> Distribution | None:
    """The distribution for the toolkit: the job's own, else the one that its launcher requires."""
    block = block_of(spec)
    if block.distribution is not None or block.framework is None:
        return block.distribution
    by_toolkit = _BY_TOOLKIT.get(type(spec.launcher.chosen))
    return None if by_toolkit is None else by_toolkit(spec, block)


def program_file(command: tuple[str, ...], distribution: Distribution | None = None) -> str | None:
    """Return the file with which the toolkit does exactly what the command does; None if there is none.

    `python train.py` becomes train.py, and ./train.sh becomes train.sh. With mpirun, `python -m mpi4py train.py`
    becomes train.py too, because the toolkit adds mpi4py itself.
    """
    if command[1:3] == ("-m", "mpi4py") and by_mpirun(distribution):
        command = (command[0], *command[3:])
    words = len(command)
    if words == len(("python", "train.py")) and _PYTHON.fullmatch(posixpath.basename(command[0])):
        return command[1] if command[1].endswith(".py") and _is_file(command[1]) else None
    if words == 1 and command[0].startswith("./"):
        name = command[0].removeprefix("./")
        return name if _is_file(name) and not name.endswith(".py") else None
    return None


def by_mpirun(distribution: Distribution | None) -> bool:
    """Whether the toolkit starts the ranks by mpirun: its own, or through SageMaker's data parallel library."""
    if distribution is None:
        return False
    ways = (distribution.mpi, distribution.data_parallel, distribution.pytorch_ddp)
    return any(way is not None and way.enabled for way in ways)


def torch_objection(spec: Spec, block: SageMaker) -> str | None:
    """Explain why SageMaker's own torchrun can't run the job; None if it can."""
    framework = block.framework
    if framework is None or framework.name == "TensorFlow" or framework.tensorflow_version is not None:
        return "an image that isn't PyTorch's"
    if spec.image is not None:
        return None
    instance_type = rank_instance_type(block)
    version = framework.pytorch_version if framework.name == "HuggingFace" else framework.version
    if not has_gpus(instance_type) and not is_trainium(instance_type):
        return f"{instance_type}, which has neither GPUs nor Trainium"
    supported = TORCH_DISTRIBUTED_ON_GPU if has_gpus(instance_type) else TORCH_DISTRIBUTED_ON_TRAINIUM
    return None if version in supported else f"PyTorch {version} on {instance_type}"


def said_procs(spec: Spec) -> int | None:
    """Return the job's ranks on each node; None for Auto, also after muster has resolved it."""
    procs = spec.procs_per_node
    return None if isinstance(procs, str) or "procs_per_node" not in spec.model_fields_set else procs


def rank_groups(block: SageMaker) -> tuple[InstanceGroup, ...]:
    """The instance groups on which the ranks run: the one that the distribution names, or the only one."""
    groups = block.instance_groups
    chosen = block.distribution.instance_group if block.distribution is not None else None
    return groups if len(groups) == 1 else tuple(group for group in groups if group.name == chosen)


def is_on_some_instances(block: SageMaker) -> bool:
    """Whether the ranks run on one of several instance groups only."""
    return len(block.instance_groups) > 1 and bool(rank_groups(block))


def rank_instance_type(block: SageMaker) -> str:
    """The type of the instances on which the ranks run; "" if the job doesn't say."""
    if block.instance_type is not None:
        return block.instance_type
    groups = rank_groups(block) or block.instance_groups
    return groups[0].instance_type if groups else ""


def _by_script(spec: Spec, block: SageMaker, distribution: Distribution | None) -> bool:
    if block.distribution is not None:
        return False
    return distribution is None and not spec.launcher.chosen.command_starts_ranks


def _container_needs_script(spec: Spec, block: SageMaker) -> bool:
    if block.container_entrypoint or block.container_arguments:
        return False
    if not spec.launcher.chosen.command_starts_ranks:
        return True
    # A script for SageMaker needs SageMaker's variables, and code in an archive is most likely such a script.
    return spec.source is not None and spec.command != SERVICE_COMMAND


def _is_file(name: str) -> bool:
    return _FILE.fullmatch(name) is not None and not {".", ".."} & set(name.split("/"))


def _mpirun(spec: Spec, _: SageMaker) -> Distribution:
    return Distribution(mpi=SageMakerMpi(custom_mpi_options=shlex.join(spec.launcher.chosen.arguments())))


def _torchrun(spec: Spec, block: SageMaker) -> Distribution | None:
    if spec.launcher.chosen.arguments() or torch_objection(spec, block) is not None:
        return None
    # The toolkit would start a separate torchrun, with its own world, in each group.
    return Distribution(torch_distributed=Switch()) if len(block.instance_groups) <= 1 else None


_BY_TOOLKIT: Mapping[type[Launcher], Callable[[Spec, SageMaker], Distribution | None]] = {
    Mpi: _mpirun,
    Torchrun: _torchrun,
}
"""The launchers that SageMaker's toolkit has itself, and how a job tells it."""
