"""A rank of the rank-truth tests: takes part in a small collective, and fails as requested.

`workload.py BEHAVIOUR [--root-cause RANK]`: every rank connects to the others over plain TCP at
MASTER_ADDR:WORKLOAD_PORT's file and sums a number with them a few times. Then the root cause does what BEHAVIOUR names,
while the others remain in the collective, where they fail only because their peer has died. It doesn't use torch,
because a run then takes a second instead of ten.
"""

import argparse
import atexit
import ctypes
import os
import pathlib
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
MEETING_PLACE = pathlib.Path(os.environ["TRUTH_DIR"])


class Collective:
    """A star: rank 0 adds up the others' numbers and sends them the sum. A lost peer is an error at once."""

    def __init__(self) -> None:
        self.peers: list[socket.socket] = []
        place = MEETING_PLACE / "port"
        if RANK == 0:
            server = socket.create_server(("127.0.0.1", 0))
            draft = place.with_suffix(".draft")
            draft.write_text(str(server.getsockname()[1]))
            draft.rename(place)
            self.peers = [server.accept()[0] for _ in range(WORLD - 1)]
            return
        while not place.exists():
            time.sleep(0.01)
        self.peers = [socket.create_connection(("127.0.0.1", int(place.read_text())))]

    def all_reduce(self, value: float) -> float:
        if RANK != 0:
            self.send(self.peers[0], value)
            return self.receive(self.peers[0])
        total = value + sum(self.receive(peer) for peer in self.peers)
        for peer in self.peers:
            self.send(peer, total)
        return total

    @staticmethod
    def send(peer: socket.socket, value: float) -> None:
        peer.sendall(struct.pack("!d", value))

    @staticmethod
    def receive(peer: socket.socket) -> float:
        data = peer.recv(8, socket.MSG_WAITALL)
        if len(data) < 8:
            raise ConnectionError("Connection closed by peer")
        return float(struct.unpack("!d", data)[0])


def say_goodbye() -> None:
    """Close the connections long before the end of the process, and print after the error, as trackers do."""
    for descriptor in range(3, 64):
        if os.path.exists(f"/proc/self/fd/{descriptor}") and stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            socket.socket(fileno=descriptor).close()
    for number in range(10):
        print(f"tracker: summary line {number}", file=sys.stderr)
    time.sleep(3)


def misbehave(behaviour: str) -> None:
    """The root cause's behaviour instead of its share of the work."""
    if behaviour == "exit-7":
        sys.exit(7)
    if behaviour == "exit-0-early":
        sys.exit(0)
    if behaviour == "raise":
        raise ValueError("label 13 is not in 0..9")
    if behaviour == "raise-and-upload":
        atexit.register(say_goodbye)
        raise ValueError("label 13 is not in 0..9")
    if behaviour == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if behaviour == "segfault":
        ctypes.string_at(0)
    if behaviour == "long-line":
        os.write(2, b"x" * (1 << 20))
        os._exit(9)
    if behaviour == "bad-utf8":
        os.write(2, b"\xff\xfe caf\xe9 \x1b[31mred\x1b[0m \xc3\n")
        os._exit(9)


def leave_children() -> None:
    """Leave a child in the rank's session, one in another session, and one whose parent has exited."""
    subprocess.Popen(["sleep", "600"])
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    subprocess.run(["sh", "-c", "setsid sleep 600 &"], check=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("behaviour")
    parser.add_argument("--root-cause", type=int, default=0)
    arguments = parser.parse_args()

    if arguments.behaviour == "deaf" and RANK != arguments.root_cause:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    collective = Collective()
    for _ in range(3):
        collective.all_reduce(1.0)
    if arguments.behaviour == "deaf":
        if RANK == arguments.root_cause:
            leave_children()
            sys.exit(4)
        time.sleep(600)
    if RANK == arguments.root_cause:
        misbehave(arguments.behaviour)
    print(f"rank {RANK} goes on as process {os.getpid()}", flush=True)
    while True:
        collective.all_reduce(1.0)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
