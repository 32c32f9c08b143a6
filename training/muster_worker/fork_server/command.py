"""Parse the commands that a fork server can start: Python with a script or a module. Pure."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence, Tuple, Union

_PYTHON = re.compile(r"(.*/)?python(\d+(\.\d+)*)?t?")

OPTIONS = frozenset(("-u", "-O", "-OO", "-B", "-s", "-b", "-bb"))
"""Python options that a rank's command may have. The fork server starts with the options of the command."""


class PythonCommand:
    """`python OPTIONS... SCRIPT ARGUMENTS...`, or with `-m MODULE` instead of the script."""

    def __init__(self, python: str, options: Tuple[str, ...], script: str, module: str) -> None:
        self.python = python
        self.options = options
        self.script = script  # "" with a module
        self.module = module


def parse_command(command: Sequence[str]) -> Union[PythonCommand, str]:
    """Split a command line. If the fork server can't start the command, return the reason as text."""
    if not command or not _PYTHON.fullmatch(command[0]):
        return "the command's program is not a Python interpreter"
    rest = list(command[1:])
    options = []
    while rest and rest[0] in OPTIONS:
        options.append(rest.pop(0))
    if not rest:
        return "the command has no script"
    if rest[0] == "-m" and len(rest) > 1:
        return PythonCommand(command[0], tuple(options), "", rest[1])
    if rest[0].startswith("-"):
        return f"Python's option {rest[0]} is not one of {', '.join(sorted(OPTIONS))}"
    if not rest[0].endswith(".py"):
        return f"{rest[0]} is not a .py file"
    return PythonCommand(command[0], tuple(options), rest[0], "")
