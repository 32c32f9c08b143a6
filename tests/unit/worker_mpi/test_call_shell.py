"""The shell of a call."""

import pytest

from muster_worker.remote.command_shell import choose_shell


@pytest.mark.parametrize(
    ("login", "variable", "shell"),
    [
        ("/bin/bash", "/bin/csh", "/bin/sh"),
        ("/bin/csh", "/bin/bash", "/bin/csh"),
        ("/usr/bin/tcsh", "", "/usr/bin/tcsh"),
        ("/usr/sbin/nologin", "/bin/tcsh", "/bin/tcsh"),
        ("", "/bin/csh", "/bin/csh"),
        ("", "", "/bin/sh"),
        ("/usr/bin/zsh", "", "/bin/sh"),
        ("/usr/bin/fish", "/usr/bin/fish", "/bin/sh"),
    ],
)
def test_the_shell_that_an_mpirun_writes_for(login: str, variable: str, shell: str) -> None:
    assert choose_shell(login, variable) == shell
