"""Everything around a local run: its folders, its collector, its tokens; opened before the first agent, closed after the last."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from muster_worker import wire

from muster.api.spec import Job
from muster.backends.agent_archive import agent_archive
from muster.backends.local.backend import LocalBackend
from muster.backends.local.devices import split_gpus
from muster.backends.local.environment import node_environment
from muster.backends.local.hosts import hosts_file
from muster.backends.local.inputs import Folders, link_channels
from muster.backends.local.layout import RunLayout, make_folders
from muster.plan.render import render_plan
from muster.plan.world import world_size


@dataclass(frozen=True)
class Machine:
    """What this machine gives a run: the ranks' environment, GPUs, cores, and the text of its own hosts file."""

    environment: Mapping[str, str]
    gpus: tuple[str, ...]
    cores: int
    hosts: str
