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
def read_help(program: str, *words: str) -> str:
    # kubectl finds muster's command on the PATH.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [str(programs.find(program)), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


@lru_cache
def known_options(program: str, subcommand: str) -> frozenset[str]:
    """Return the options of a subcommand, by the program's own help. Fails if there is no such subcommand."""
    own = read_help(program, *subcommand.split(), "--help")
    assert f"{program} {subcommand}" in own
    return frozenset(OPTION.findall(own + read_help(program, "options" if program == "kubectl" else "--help")))


def test_options_are_the_programs_own() -> None:
    unknown = {}
    for command in (*KUBECTL, *(each for each in HELM if "--install" not in each)):
        program, *words = shlex.split(command)
        is_nested = words[0] in {"rollout", "create", "muster"} or words[:2] == ["get", "values"]
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
        if missing := used - known_options(program, " ".join(words[: 2 if is_nested else 1])):
            unknown[command] = missing
    assert unknown == {}


@pytest.mark.parametrize("command", [each for each in HELM if "--install" in each])
def test_the_chart_takes_what_is_set(command: str) -> None:
    _, _, _, release, folder, *options = shlex.split(command)
    assert ROOT / folder == CHART
    options.remove("--create-namespace")
    objects = chart.documents(chart.helm(["template", release, str(CHART), *options, chart.KUBE_VERSION], {}))
    namespace = options[options.index("--namespace") + 1]
    assert chart.one(objects, "Deployment", "muster")["metadata"]["namespace"] == namespace
