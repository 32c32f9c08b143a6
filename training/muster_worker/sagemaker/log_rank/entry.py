"""The entry point that SageMaker's toolkit starts instead of the user's program. It runs that program in a wrapper.

In the source archive its name is `muster_entry.py`, beside the agent (`muster_entry.pyz`) and the name of the user's
program (`muster_entry.program`). It has to load in any Python, so it has no functions and no annotations. It imports
only modules that every Python loads at its start, because the user's folder may contain a `json.py`.
"""

import os
import sys

if __name__ == "__main__":
    _folder = os.path.dirname(os.path.abspath(__file__))
    _name = os.path.splitext(os.path.basename(__file__))[0]

    with open("/proc/self/cmdline", "rb") as _file:
        _command = [os.fsdecode(_argument) for _argument in _file.read().split(b"\0")[:-1]]
    with open(os.path.join(_folder, _name + ".program"), "rb") as _file:
        _program = os.fsdecode(_file.read().strip())

    # torchrun: python -u muster_entry.py; mpirun: python -m mpi4py muster_entry.py; a package: python -m muster_entry
    _command[0] = sys.executable
    for _index, _argument in enumerate(_command):
        if _argument in (_name, _name + ".py"):
            _command[_index] = _program[: -len(".py")] if _argument == _name else _program
            break

    _agent = os.path.join(_folder, _name + ".pyz")
    # The training must run even if the agent can't.
    if sys.version_info >= (3, 8) and os.path.exists(_agent):
        _command = [sys.executable, "-I", "-S", _agent, "log-rank", "--"] + _command  # noqa: RUF005 - for any Python
    os.execv(_command[0], _command)
