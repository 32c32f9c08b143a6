"""Create the files of a training job's hosts on this machine, and the command that starts a host's toolkit."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from muster.backends.local.layout import RunLayout
from muster.backends.local.toolkit.main import SSH
from muster.render.agent_archive import build_agent_archive

INTERFACE = "lo"
"""All hosts of this machine use the loopback interface."""

_PROGRAM = "toolkit_main.py"


@dataclass(frozen=True)
class CodeFile:
    """A file of the job's code."""

    content: bytes
    executable: bool = False


@dataclass(frozen=True)
class Training:
    """The inputs of a training job's containers, from its request.

    `channels` are the entries of inputdataconfig.json; `module` is the framework's module of the toolkit, "" for none.
    All hosts belong to one instance group.
    """

    hosts: tuple[str, ...]
    group: str
    instance_type: str
    hyperparameters: Mapping[str, str]
    channels: Mapping[str, Mapping[str, str]]
    environment: Mapping[str, str]
    code: Mapping[str, CodeFile]
    module: str


@dataclass(frozen=True)
class TrainingPlaces:
    """The paths that the hosts of a run share."""

    private: Path

    @property
    def base(self) -> Path:
        """The mount point of each host's own /opt/ml."""
        return self.private / "ml"

    @property
    def sockets(self) -> Path:
        return self.private / "ssh"

    @property
    def programs(self) -> Path:
        return self.private / "bin"

    @property
    def toolkit(self) -> Path:
        return self.private / _PROGRAM

    def get_host_file(self, node: int) -> Path:
        return self.private / f"host-{node}.json"


def make_hosts(training: Training, layout: RunLayout, hosts_file: str, python: str) -> None:
    """Create all files of the hosts, below existing folders. Raises `OSError`.

    `python` is the interpreter that has the toolkit installed.
    """
    paths = TrainingPlaces(layout.private)
    for folder in (paths.base, paths.sockets, paths.programs):
        folder.mkdir()
    layout.archive.write_bytes(build_agent_archive())
    layout.hosts.write_text(hosts_file, encoding="utf-8", errors="surrogateescape")
    paths.toolkit.write_bytes(files("muster.backends.local.toolkit").joinpath("main.py").read_bytes())
    command = (python, "-I", "-S", str(paths.toolkit), SSH, str(paths.sockets))
    _write_executable(paths.programs / "ssh", f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    for node, name in enumerate(training.hosts):
        root = layout.get_node(node).root
        _write_config(training, name, root / "input" / "config")
        _write_code(training.code, root / "code")
        host = {
            "name": name,
            "hosts_file": str(layout.hosts),
            "tree": str(root.resolve()),
            "base": str(paths.base),
            "sockets": str(paths.sockets),
            "module": training.module,
            "archive": str(layout.archive),
            "parent": os.getpid(),
        }
        paths.get_host_file(node).write_text(json.dumps(host), encoding="utf-8")


def build_host_command(paths: TrainingPlaces, python: str, node: int) -> tuple[str, ...]:
    """Return the command that starts a host's toolkit."""
    return (python, str(paths.toolkit), str(paths.get_host_file(node)))


def build_host_environment(
    training: Training, paths: TrainingPlaces, inherited_variables: Mapping[str, str]
) -> dict[str, str]:
    """Return a host's environment: the user's, overridden by the job's, with muster's `ssh` first on PATH."""
    environment = {**inherited_variables, **training.environment}
    path = environment.get("PATH", os.defpath)
    return {**environment, "PATH": f"{paths.programs}:{path}", "MUSTER_RUN_DIR": f"{paths.private}/"}


def _write_config(training: Training, name: str, folder: Path) -> None:
    group = {
        "instance_group_name": training.group,
        "instance_type": training.instance_type,
        "hosts": list(training.hosts),
    }
    resources = {
        "current_host": name,
        "current_instance_type": training.instance_type,
        "current_group_name": training.group,
        "hosts": list(training.hosts),
        "instance_groups": [group],
        "network_interface_name": INTERFACE,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in (
        ("hyperparameters", dict(training.hyperparameters)),
        ("inputdataconfig", {channel: dict(entry) for channel, entry in training.channels.items()}),
        ("resourceconfig", resources),
    ):
        (folder / f"{file}.json").write_text(json.dumps(content), encoding="utf-8")


def _write_code(code: Mapping[str, CodeFile], folder: Path) -> None:
    for path, file in code.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)


def _write_executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
