"""Selects the shell for a command that mpirun has written for another node.

sshd would use the user's login shell. Open MPI relies on that: for csh it writes `setenv` and `set path = (...)`, for
all other shells sh syntax (Open MPI 4, plm_rsh_module.c; PRRTE 3, plm_ssh_module.c: setup_shell, find_shell). No option
changes that; `plm_rsh_assume_same_shell` only makes Open MPI query each node first.
"""

from __future__ import annotations

import os
import pwd
from typing import Mapping

SHELL = "/bin/sh"

_KNOWN_SHELLS = ("bash", "zsh", "tcsh", "csh", "ksh", "sh")
_CSH_SHELLS = ("tcsh", "csh")


def choose_command_shell(environment: Mapping[str, str]) -> str:
    """Return the shell for commands that run with `environment`."""
    return choose_shell(_read_login_shell(), environment.get("SHELL", ""))


def choose_shell(login: str, variable: str) -> str:
    """Choose the login shell from /etc/passwd ("" without an entry), or SHELL if the login shell is unknown."""
    candidates = (path for path in (login, variable) if os.path.basename(path) in _KNOWN_SHELLS)
    chosen = next(candidates, SHELL)
    return chosen if os.path.basename(chosen) in _CSH_SHELLS else SHELL


def _read_login_shell() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:  # a uid without an entry, as usual in Kubernetes
        return ""
