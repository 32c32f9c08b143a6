"""A training job's host on this machine: its /opt/ml, and how its toolkit is started."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from muster.backends.local.layout import RunLayout
from muster.backends.local.toolkit.main import KNOCK
from muster.render.agent_archive import agent_archive

INTERFACE = "lo"
"""All hosts of this machine meet there."""

_PROGRAM = "toolkit_main.py"


@dataclass(frozen=True)
class CodeFile:
    """A file of the job's code."""

    content: bytes
    executable: bool = False


@dataclass(frozen=True)
class Training:
    """What a training job's containers get, as its request says.

    `channels` are the entries of inputdataconfig.json, `module` is the framework's part of the toolkit, "" for none.
    All hosts are of one instance group.
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
    """Where the hosts of a run have what they share."""

    private: Path

    @property
    def base(self) -> Path:
        """What all hosts see as /opt/ml: each its own."""
        return self.private / "ml"

    @property
    def doors(self) -> Path:
        return self.private / "doors"

    @property
    def programs(self) -> Path:
        return self.private / "bin"

    @property
    def toolkit(self) -> Path:
        return self.private / _PROGRAM

    def host(self, node: int) -> Path:
        return self.private / f"host-{node}.json"


def make_hosts(training: Training, layout: RunLayout, hosts_file: str, python: str) -> None:
    """Make all that the hosts of a run need, below folders that are there. Raises `OSError`.

    `python` is the one that has the toolkit.
    """
    places = TrainingPlaces(layout.private)
    for folder in (places.base, places.doors, places.programs):
        folder.mkdir()
    layout.archive.write_bytes(agent_archive())
    layout.hosts.write_text(hosts_file, encoding="utf-8", errors="surrogateescape")
    places.toolkit.write_bytes(files("muster.backends.local.toolkit").joinpath("main.py").read_bytes())
    words = (python, "-I", "-S", str(places.toolkit), KNOCK, str(places.doors))
    _executable(places.programs / "ssh", f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    for node, name in enumerate(training.hosts):
        root = layout.node(node).root
        _write_config(training, name, root / "input" / "config")
        _write_code(training.code, root / "code")
        host = {
            "name": name,
            "hosts_file": str(layout.hosts),
            "tree": str(root.resolve()),
            "base": str(places.base),
            "doors": str(places.doors),
            "module": training.module,
            "archive": str(layout.archive),
            "parent": os.getpid(),
        }
        places.host(node).write_text(json.dumps(host), encoding="utf-8")


def host_command(places: TrainingPlaces, python: str, node: int) -> tuple[str, ...]:
    """What starts a host's toolkit."""
    return (python, str(places.toolkit), str(places.host(node)))


def host_environment(training: Training, places: TrainingPlaces, inherited: Mapping[str, str]) -> dict[str, str]:
    """What a host's toolkit is started with: the user's environment, the job's above it, and our `ssh` found first."""
    environment = {**inherited, **training.environment}
    path = environment.get("PATH", os.defpath)
    return {**environment, "PATH": f"{places.programs}:{path}", "MUSTER_RUN_DIR": f"{places.private}/"}


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
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.content)
        place.chmod(0o755 if file.executable else 0o644)


def _executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
