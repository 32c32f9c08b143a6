"""The limits of the collector's connections."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits for the number of connections, and for their times in seconds."""

    connections: int = 30_000  # two connections of each of 10,000 agents, and a reserve
    unauthenticated: int = 4_096  # a large job's agents connect at the same time
    unauthenticated_per_address: int = 64
    handshakes: int = 256  # concurrent TLS handshakes; other unauthenticated connections wait
    handshakes_per_address: int = 4
    per_pod: int = 4  # an agent has two connections, and two more may be half-open
    authentication_seconds: float = 10.0  # from accept to the first valid token
    handshake_seconds: float = 5.0
    handshake_wait_seconds: float = 3.0  # an agent gives up 5 s after it connects, and then a handshake is useless
    body_seconds: float = 10.0  # a report has a few KiB, 1 MiB at most
    linger_seconds: float = 2.0  # the server reads a refused body this long, so that the client receives the response
