"""Pings some peers, answers their pings, and notifies the node when it has to stop its ranks.

A thread handles one UDP socket. It answers only datagrams that are authenticated with the key of one of the job's last
attempts. It reads at most `MAX_PER_SECOND` datagrams a second, so that a flood costs little.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Tuple

from muster_worker.agent.fence import Fence, select_ping_targets
from muster_worker.contract import ping
from muster_worker.contract.ping import Ping, PingKind
from muster_worker.contract.schema import Command, CommandKind
from muster_worker.network.port import hold_port

PING_INTERVAL_SECONDS = 3.0
FIRST_PING_INTERVAL_SECONDS = 1.0
"""The interval until a peer has answered. It is shorter, because the first answer arms the fence."""

ANSWER_TIMEOUT_SECONDS = 10.0
"""An answer that takes longer is ignored."""

MAX_PER_SECOND = 200
MAX_ATTEMPTS = 4
"""The thread answers pings of this many attempts, the newest ones."""

_TICK_SECONDS = 1.0


@dataclass
class _Attempt:
    """An attempt's key, and this node's answer to pings of the attempt."""

    key: bytes
    answer: int = PingKind.ALIVE


@dataclass(frozen=True)
class _PendingPing:
    """A ping that waits for its answer."""

    peer: int
    sent_at: float


class PeerPings:
    """Sends and answers this node's pings. `collector_answered_at` returns the time of the last answered request.

    Its thread calls `stop` with the reason, at most once per attempt, and `log_line` with lines for the log. Raises
    `OSError` if no port is free.
    """

    def __init__(
        self,
        node: int,
        fence_seconds: float,
        collector_answered_at: Callable[[], float],
        stop: Callable[[str], None],
        log_line: Callable[[str], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._fence_seconds = fence_seconds
        self._collector_answered_at = collector_answered_at
        self._stop = stop
        self._log_line = log_line
        self._monotonic = monotonic
        self._socket = hold_port(socket.SOCK_DGRAM) if fence_seconds else None
        self._lock = threading.Lock()
        self._attempts: Dict[int, _Attempt] = {}
        self._fence: Optional[Fence] = None
        self._peers: Dict[int, Tuple[str, int]] = {}
        self._pending_pings: Dict[bytes, _PendingPing] = {}
        self._sent_at = 0.0
        if self._socket is not None:
            threading.Thread(target=self._run, args=(self._socket,), name="pings", daemon=True).start()

    @property
    def port(self) -> Optional[int]:
        """The UDP port for the peers' pings; None without a fence."""
        return None if self._socket is None else int(self._socket.getsockname()[1])

    def begin_attempt(self, command: Command) -> None:
        """Begin the attempt of a Start command."""
        if self._socket is None or command.ping_key is None:
            return
        with self._lock:
            for attempt in self._attempts.values():
                attempt.answer = PingKind.ATTEMPT_ENDED
            self._attempts[command.attempt] = _Attempt(bytes.fromhex(command.ping_key))
            for old_attempt in sorted(self._attempts)[:-MAX_ATTEMPTS]:
                del self._attempts[old_attempt]
            node_rank = [peer.node for peer in command.peers].index(self._node)
            targets = [command.peers[rank] for rank in select_ping_targets(node_rank, len(command.peers))]
            self._peers = {peer.node: (peer.address, peer.ping_port) for peer in targets if peer.ping_port is not None}
            self._fence = Fence(self._fence_seconds, self._monotonic()) if self._peers else None
            self._pending_pings.clear()

    def end_attempt(self, command: Command) -> None:
        """Answer from now on that the command has ended its attempt, for nodes that did not receive the command."""
        if command.kind != CommandKind.START:
            self._set_answer(command.attempt, PingKind.ATTEMPT_ENDED)

    def record_success(self, attempt: int) -> None:
        """Answer from now on that all ranks of this node have succeeded."""
        self._set_answer(attempt, PingKind.SUCCEEDED)

    def _set_answer(self, number: int, answer: int) -> None:
        with self._lock:
            self._fence = None
            attempt = self._attempts.get(number)
            if attempt is not None:
                attempt.answer = max(attempt.answer, answer)

    def _run(self, udp_socket: socket.socket) -> None:
        next_tick = self._monotonic()
        while True:
            now = self._monotonic()
            if now >= next_tick:
                next_tick = now + _TICK_SECONDS
                for datagram, (host, port) in self._tick(now):
                    is_mapped = udp_socket.family == socket.AF_INET6 and ":" not in host
                    _send(udp_socket, datagram, (f"::ffff:{host}" if is_mapped else host, port))
            udp_socket.settimeout(max(0.001, next_tick - self._monotonic()))
            try:
                datagram, source = udp_socket.recvfrom(ping.PING_BYTES + 1)
            except OSError:
                continue  # the timeout, or an ICMP error of an earlier ping
            reply = self._handle(datagram)
            if reply is not None:
                _send(udp_socket, reply, source)
            time.sleep(1.0 / MAX_PER_SECOND)

    def _tick(self, now: float) -> List[Tuple[bytes, Tuple[str, int]]]:
        """Check the fence; return pings and their addresses."""
        with self._lock:
            fence = self._fence
            if fence is None:
                return []
            fence.record_collector_answer(self._collector_answered_at())
            line = fence.describe_change(now)
            if line is not None:
                self._log_line(line)
            reason = fence.find_stop_reason(now)
            if reason is None:
                return self._make_pings(now) if fence.should_ping(now) else []
            self._fence = None
        self._stop(reason)
        return []

    def _make_pings(self, now: float) -> List[Tuple[bytes, Tuple[str, int]]]:
        is_armed = self._fence is not None and self._fence.is_armed
        if now - self._sent_at < (PING_INTERVAL_SECONDS if is_armed else FIRST_PING_INTERVAL_SECONDS):
            return []
        self._sent_at = now
        key = self._attempts[max(self._attempts)].key
        self._pending_pings = {
            nonce: pending
            for nonce, pending in self._pending_pings.items()
            if now - pending.sent_at < ANSWER_TIMEOUT_SECONDS
        }
        datagrams = []
        for peer, address in self._peers.items():
            nonce = os.urandom(ping.NONCE_BYTES)
            self._pending_pings[nonce] = _PendingPing(peer, now)
            datagrams.append((ping.encode(Ping(PingKind.PING, self._node, peer, nonce), key), address))
        return datagrams

    def _handle(self, datagram: bytes) -> Optional[bytes]:
        """Handle a datagram; return the answer if it is a ping."""
        with self._lock:
            for attempt in self._attempts.values():
                received = ping.decode(datagram, attempt.key)
                if received is not None and received.receiver == self._node:
                    break
            else:
                return None
            if received.kind == PingKind.PING:
                answer = Ping(attempt.answer, self._node, received.sender, received.nonce)
                return ping.encode(answer, attempt.key)
            pending = self._pending_pings.pop(received.nonce, None)
            if pending is not None and pending.peer == received.sender and self._fence is not None:
                self._fence.record_peer_answer(received.sender, received.kind, pending.sent_at)
            return None


def _send(udp_socket: socket.socket, datagram: bytes, address: Tuple[str, int]) -> None:
    try:
        udp_socket.sendto(datagram, address)
    except OSError:
        pass  # no route: the sender handles it like a lost datagram
