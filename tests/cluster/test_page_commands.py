"""Every kubectl and helm command on a page has a subcommand and options that the program supports; charts are
rendered.
"""

import os
import re
import shlex
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from cluster import chart, programs
from cluster.helm import CHART
from cluster.places import ROOT
from integration.docs.pages import blocks

COMMANDS = sorted({command for block in blocks() if block.language == "sh" for command in block.commands})
KUBECTL = [command for command in COMMANDS if command.startswith("kubectl ")]
HELM = [command for command in COMMANDS if command.startswith("helm ")]
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


@lru_cache
def known_options(program: str, subcommand: str) -> frozenset[str]:
    """Return the options of a subcommand, by the program's own help. Fails if there is no such subcommand."""
    command = [str(programs.find(program)), *subcommand.split()]
    # kubectl finds muster's command on the PATH.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([*command, "--help"], check=True, capture_output=True, text=True, env=environment)
    assert f"{program} {subcommand}" in done.stdout
    general = ["options"] if program == "kubectl" else ["--help"]
    shared = subprocess.run([command[0], *general], check=True, capture_output=True, text=True)
    return frozenset(OPTION.findall(done.stdout + shared.stdout))


@pytest.mark.parametrize("command", [*KUBECTL, *(each for each in HELM if "--install" not in each)])
def test_options_are_the_programs_own(command: str) -> None:
    program, *words = shlex.split(command)
    subcommand = " ".join(
        words[: 2 if words[0] in {"rollout", "create", "muster"} or words[:2] == ["get", "values"] else 1]
    )
    used = {word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
    assert used <= known_options(program, subcommand)


@pytest.mark.parametrize("command", [each for each in HELM if "--install" in each])
def test_the_chart_takes_what_is_set(command: str) -> None:
    _, _, _, release, folder, *options = shlex.split(command)
    assert ROOT / folder == CHART
    options.remove("--create-namespace")
    objects = chart.documents(chart.helm(["template", release, str(CHART), *options, chart.KUBE_VERSION], {}))
    namespace = options[options.index("--namespace") + 1]
    assert chart.one(objects, "Deployment", "muster")["metadata"]["namespace"] == namespace
