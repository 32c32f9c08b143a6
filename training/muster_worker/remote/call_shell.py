"""Which shell runs a command that an mpirun has written for another node.

sshd would take the user's own. Open MPI counts on it: for a csh it writes `setenv` and `set path = (...)`, and there is
no word by which it could be told another shell: `plm_rsh_assume_same_shell` only makes it ask each node first. To all
other shells it speaks sh's language (Open MPI 4, plm_rsh_module.c; PRRTE 3, plm_ssh_module.c: setup_shell, find_shell).
"""

from __future__ import annotations

import os
import pwd
from typing import Mapping

SHELL = "/bin/sh"

_KNOWN = ("bash", "zsh", "tcsh", "csh", "ksh", "sh")
_OTHER_LANGUAGE = ("tcsh", "csh")


def call_shell(environment: Mapping[str, str]) -> str:
    """The shell for commands that are started in `environment`."""
    return shell_of(_login_shell(), environment.get("SHELL", ""))


def shell_of(login: str, variable: str) -> str:
    """The same by what /etc/passwd says of the user ("" for nothing), and by SHELL where that is no known shell."""
    items = (path for path in (login, variable) if os.path.basename(path) in _KNOWN)
    chosen = next(items, SHELL)
    return chosen if os.path.basename(chosen) in _OTHER_LANGUAGE else SHELL


def _login_shell() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:  # a user without a name, as Kubernetes gives them
        return ""
