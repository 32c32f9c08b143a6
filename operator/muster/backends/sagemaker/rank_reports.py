"""How a training job's ranks come to report: the agent travels in the source archive and stands around the program.

SageMaker's toolkit (sagemaker-training 5.1.4, `process.py`, `mpi.py`, `torch_distributed.py`) starts the file that the
hyperparameter `sagemaker_program` names, once a rank. With reports that is `muster_entry.py`, or `.sh` where the user's
program is none of Python: the toolkit installs `requirements.txt` for the one and not for the other. Nothing else of
the request changes, and without reports nothing at all. Pure.
"""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from json import dumps, loads

from muster.backends.agent_archive import agent_archive

PROGRAM = "sagemaker_program"
TORCH_DISTRIBUTED = "sagemaker_torch_distributed_enabled"
MPI = "sagemaker_mpi_enabled"
MODEL_PARALLEL = "mp_parameters"

_ENTRY = "muster_entry"
_PYTHON = ".py"


def report_files(program: str) -> dict[str, bytes]:
    """What goes into the root of the source archive, by name, so that the ranks of the user's `program` report."""
    suffix = _suffix(program)
    return {
        f"{_ENTRY}{suffix}": files("muster_worker").joinpath(f"log_entry{suffix}").read_bytes(),
        f"{_ENTRY}.program": f"{program}\n".encode(),
        f"{_ENTRY}.pyz": agent_archive(),
    }


def with_rank_reports(hyperparameters: Mapping[str, str]) -> dict[str, str]:
    """A request's `HyperParameters` with the program that reports in the user's place. It must have a program."""
    program = _program(hyperparameters)
    return {**hyperparameters, PROGRAM: dumps(f"{_ENTRY}{_suffix(program)}")}


def reports_by_default(hyperparameters: Mapping[str, str]) -> bool:
    """Whether `rankReports: Auto` means On: torchrun or mpirun starts the ranks of a program in a source archive.

    Not with Amazon's model parallel library, whose launcher nobody can try outside of Amazon's images.
    """
    if PROGRAM not in hyperparameters or MODEL_PARALLEL in hyperparameters:
        return False
    return any(hyperparameters.get(name) == "true" for name in (TORCH_DISTRIBUTED, MPI))


def why_no_reports(hyperparameters: Mapping[str, str], source: Iterable[str] | None) -> str | None:
    """Why ranks can't report, as a clause without a full stop; None when they can.

    `source` are the names in the root of the source archive that muster makes; None: muster makes none.
    """
    if PROGRAM not in hyperparameters:
        return "the training image starts a program of its own"
    if source is None:
        return "the source archive is not muster's to change"
    names = sorted(source)
    if "setup.py" in names and not _program(hyperparameters).endswith((_PYTHON, ".sh")):
        return "the program is a package's module; name its file, with .py"
    taken = [name for name in names if name.startswith(f"{_ENTRY}.")]
    return f"the source has a file {taken[0]}, which muster needs the name of" if taken else None


def _program(hyperparameters: Mapping[str, str]) -> str:
    return str(loads(hyperparameters[PROGRAM]))


def _suffix(program: str) -> str:
    return _PYTHON if program.endswith(_PYTHON) else ".sh"
