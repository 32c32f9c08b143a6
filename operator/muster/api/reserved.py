"""Names that are reserved for muster: torchrun's options and launchers. `contract` has the rendezvous variables."""

TORCHRUN_OPTIONS = (
    "nnodes",
    "nproc-per-node",
    "node-rank",
    "master-addr",
    "master-port",
    "rdzv-backend",
    "rdzv-endpoint",
    "rdzv-id",
    "rdzv-conf",
    "max-restarts",
    "no-python",
    "standalone",
    "module",
    "run-path",
    "virtual-local-rank",  # every rank would see LOCAL_RANK 0
    "help",  # it would exit with 0 and start no rank
    "print-completion",
)
"""Without the leading dashes; torchrun takes _ for - as well."""

LAUNCHERS = ("torchrun", "accelerate", "deepspeed")
"""Commands that start a node's ranks themselves; `contract.Mpi` has those that start the ranks of all nodes."""

LAUNCHER_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
"""The same launchers as modules: python -m torch.distributed.run."""


def is_torchrun_option(argument: str) -> bool:
    """Whether the argument is one of torchrun's options that muster sets, whole, abbreviated or with `=value`."""
    if argument == "--" or argument.startswith(("-m", "-h")):
        return True
    if not argument.startswith("--"):
        return False
    name = argument[2:].partition("=")[0].replace("_", "-")
    # argparse accepts any unambiguous prefix of an option
    return any(option.startswith(name) for option in TORCHRUN_OPTIONS)
