"""Determines the rank and host of a process in a SageMaker training job."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from typing import Mapping, Sequence

from muster_worker.mpi import world_variables


@dataclass(frozen=True)
class RankPosition:
    """A rank's host, rank numbers and world sizes. The sizes are those of the launcher, or 1."""

    host: str
    rank: int
    local_rank: int
    world: int
    local_world: int


def find_position(environment: Mapping[str, str]) -> RankPosition:
    """Find the position in the rank's environment and its host's configuration. Raises `ValueError`."""
    config = _read_resource_config(environment)
    # mpirun sends its own host's SM_* variables to all ranks, so prefer the host's file.
    host = str(config.get("current_host") or environment.get("SM_CURRENT_HOST") or socket.gethostname())
    hosts = config.get("hosts")
    return read_position(environment, host, [str(name) for name in hosts] if isinstance(hosts, list) else [host])


def read_position(environment: Mapping[str, str], host: str, hosts: Sequence[str]) -> RankPosition:
    """Read the position of a process on `host`, one of `hosts`. Without torchrun and MPI a host has one rank. Pure."""
    if "RANK" in environment and "LOCAL_RANK" in environment:
        world = int(environment.get("WORLD_SIZE", "1"))
        local_world = int(environment.get("LOCAL_WORLD_SIZE", "1"))
        return RankPosition(host, int(environment["RANK"]), int(environment["LOCAL_RANK"]), world, local_world)
    position = world_variables.find_position(environment, 1, 1)
    if position is not None:
        return RankPosition(host, position.rank, position.local_rank, position.size, position.local_size)
    return RankPosition(host, hosts.index(host) if host in hosts else 0, 0, len(hosts), 1)


def _read_resource_config(environment: Mapping[str, str]) -> Mapping[str, object]:
    folder = environment.get("SM_INPUT_CONFIG_DIR", "/opt/ml/input/config")
    try:
        with open(os.path.join(folder, "resourceconfig.json"), encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}
