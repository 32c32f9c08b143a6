"""A main process that leads, and executes the commands on its standard input: `burn 5`, `hold 5`, `act`.

It prints a line for each event: `leads`, `stopped`, `burnt`, `done`, `refused`.
"""

import asyncio
import ctypes
import logging
import sys
import time

from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.election import LeaseTimes
from muster.controller.health import HealthCheck, open_listening_socket
from muster.controller.leader.election import LeaderElection
from muster.controller.leader.elector import ElectorOptions
from muster.controller.leader.process import run_elector_process
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import PODS

TIMES = LeaseTimes(lease=3, renew=0.4, give_up=2.0, poll=0.2, candidate_poll=0.1)
"""A fifth of the operator's times, as each test waits until some are over."""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def burn(seconds: float) -> None:
    """Compute in Python."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(index * index for index in range(10_000))


def hold(seconds: float) -> None:
    """Call a C function that holds the interpreter's lock all the time. It sleeps: others wait only for the lock."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


async def act(client: Client) -> None:
    """An action with an external effect."""
    try:
        await client.create(PODS, "default", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}})
    except ApiError as error:
        say(f"refused {error.reason}")
    else:
        say("done")


async def lead(leader_term: int) -> None:
    say(f"leads {leader_term}")
    try:
        await asyncio.Event().wait()
    finally:
        say(f"stopped {leader_term}")


async def obey(client: Client) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        match line.decode().split():
            case ["burn", seconds]:
                burn(float(seconds))
                say("burnt")
            case ["hold", seconds]:
                hold(float(seconds))
                say("burnt")
            case ["act"]:
                await act(client)


async def main(election: LeaderElection) -> None:
    connected = await Client.connect()
    election.start((HealthCheck("it is told to be ill", lambda: True),), ())
    pulse = asyncio.create_task(election.send_heartbeats())
    obeying = asyncio.create_task(obey(connected.restrict_changes(election.holds_lease)))
    try:
        await election.run(lead)
    finally:
        pulse.cancel()
        obeying.cancel()
        await connected.close()


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    options = ElectorOptions("default", "muster", sys.argv[1], TIMES)
    with run_elector_process(open_listening_socket("127.0.0.1", int(sys.argv[2])), options) as begun:
        asyncio.run(main(begun))
