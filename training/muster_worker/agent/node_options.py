"""The settings of a node's agent."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Optional

from muster_worker.agent.peer_pings import PeerPings
from muster_worker.launchers.environment import NodeContext


@dataclass(frozen=True)
class NodeOptions:
    """The agent's settings: its options, and the node's context without peers, which come with the Start command.

    `grace_seconds` is the ranks' grace period after SIGTERM to the agent. `port` is held for the job, if a port was
    free. `sync` is the socket of the process that syncs files with S3; None if the job has no files there. `pings` asks
    the peers.
    """

    context: NodeContext
    pings: PeerPings
    grace_seconds: float
    termination_log: Optional[str]
    lifeline: Optional[int]
    port: Optional[socket.socket] = None
    sync: Optional[str] = None
