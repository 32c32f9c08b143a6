"""The settings of a node's agent."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Optional

from muster_worker.agent.peer_pings import PeerPings
from muster_worker.launchers.environment import NodeContext


@dataclass(frozen=True)
class NodeOptions:
    """The settings of a node's agent.

    `context` has no peers: the Start command lists them. `grace_seconds` is the ranks' grace period after SIGTERM to
    the agent. `port_socket` is bound, so that no other process gets its port; None if no port was free. `lifeline` is
    the descriptor of a pipe that closes when the agent's parent exits. `sync` is the socket of the process that syncs
    files with S3; None if the job has no files in S3. `pings` sends pings to the peers.
    """

    context: NodeContext
    pings: PeerPings
    grace_seconds: float
    termination_log: Optional[str]
    lifeline: Optional[int]
    port_socket: Optional[socket.socket] = None
    sync: Optional[str] = None
