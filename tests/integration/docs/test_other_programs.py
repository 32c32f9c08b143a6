"""Commands of other programs on the pages: those of AWS are compared with its API, the others with a list."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name

from integration.docs.pages import PAGES, blocks

COMMANDS = [command for block in blocks() if block.language == "sh" for command in block.commands]
RUN = {"make", "muster", ".", "eval", "export", "pip", "sed", ".venv/bin/pytest"}
"""Commands that test_docs.py and this folder's other tests run or check."""
ON_A_CLUSTER = {"kubectl", "helm"}
"""Commands that tests/cluster/test_page_commands.py checks."""
NOT_RUN = {"docker push", "docker pull", "docker inspect", "kind create", "kind load", "kind delete"}
"""Commands that no test here can run (kind.yml runs some): only these forms may be on the pages."""
CLI_ONLY = {("eks", "update-kubeconfig"), ("ecr", "get-login-password")}
"""Commands of `aws` that are not API operations."""
GENERAL = {"--region", "--query", "--output", "--force"}
"""Options of `aws` itself; --force is a Boolean of delete-repository."""


BIN = Path(sys.executable).parent


def aws_commands() -> list[str]:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = re.findall(r"^(aws [^|]*?)(?: \| .*)?$", re.sub(r"\\\n\s*", "", text), re.MULTILINE)
    return sorted({command for command in shown if "'{" not in command})


def test_every_program_is_looked_at() -> None:
    first = {command.split()[0]: command for command in COMMANDS}
    forms = {" ".join(command.split()[:2]) for command in COMMANDS if command.split()[0] in {"docker", "kind"}}
    assert set(first) - RUN - ON_A_CLUSTER - {"aws", "docker", "kind"} == set(), first
    assert forms == NOT_RUN
    assert aws_commands()


def test_the_completion_for_a_shell_can_be_loaded() -> None:
    (command,) = (command for command in COMMANDS if command.startswith("eval "))
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    line = ["bash", "-c", f"{command}; complete -p muster"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip().endswith(" muster")


@pytest.mark.parametrize("command", aws_commands())
def test_a_command_of_aws_is_an_operation_with_these_parameters(command: str) -> None:
    _, service, operation, *words = shlex.split(command)
    options = {word for word in words if word.startswith("--")} - GENERAL
    if (service, operation) in CLI_ONLY:
        assert options <= {"--name"}
        return
    model = botocore.session.Session().get_service_model(service)
    (name,) = (each for each in model.operation_names if xform_name(each, "-") == operation)
    shape = model.operation_model(name).input_shape
    assert shape is not None
    assert options <= {f"--{xform_name(member, '-')}" for member in shape.members}
