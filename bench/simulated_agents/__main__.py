"""Simulated agents for all pods of a namespace, in one process.

    PYTHONPATH=tests:bench python -m simulated_agents --api URL --keys FOLDER --namespace NAMESPACE

For each pod of a job that runs, it gets a token that the API server binds to the pod, and the plan from the job's
ConfigMap. Then it reports to the collector and obeys its commands, as the agent in a pod does: with the same protocol
over TLS, on two connections, at the same pace. No rank runs: ranks only have states and steps. Each pod connects from
another loopback address, because the collector limits connections by address.

It reads requests from standard input and answers each with a line, both as JSON:

- `{"do": "fail", "ranks": [[POD, LOCAL_RANK], ...]}` lets ranks fail now; the answer has their times;
- `{"do": "count"}` returns the number of agents, of their exchanges and of errors;
- `{"do": "wait_until_running", "agents": N, "attempt": N, "seconds": S}` waits until all ranks of N agents run;
- `{"do": "wait_for_contact", "since": TIME}` waits until the collector has answered each agent since then.

All times are monotonic seconds, which all processes of a machine share.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from scaling.api import connect
from simulated_agents.agent import Agent, Counters, Site, Timings
from simulated_agents.kubelet import Kubelet
from simulated_agents.service import CollectorService

POLL_SECONDS = 0.05


async def answer(request: Any, agents: dict[str, Agent], counters: Counters) -> Any:
    """Do what the benchmark requests."""
    match request["do"]:
        case "fail":
            return [agents[pod].fail(local_rank) for pod, local_rank in request["ranks"]]
        case "count":
            return count(agents, counters)
        case "wait_until_running":
            return await wait_until_running(agents, request)
        case "wait_for_contact":
            return await wait_for_contact(agents, request["since"], request["seconds"])
    raise ValueError(f"unknown request: {request}")


def count(agents: dict[str, Agent], counters: Counters) -> dict[str, Any]:
    """Return the state of all agents, and what they have done."""
    return {
        "agents": len(agents),
        "activities": Counter(agent.activity.name for agent in agents.values()),
        "reports": counters.reports,
        "polls": counters.polls,
        "connections": counters.connections,
        "errors": counters.errors,
        "cpu_seconds": time.process_time(),
    }


async def wait_until_running(agents: dict[str, Agent], request: Any) -> dict[str, Any]:
    """Wait until the ranks of all agents run. Return when the last ones started."""
    deadline = time.monotonic() + request["seconds"]
    while True:
        running = [agent for agent in agents.values() if agent.runs and agent.attempt == request["attempt"]]
        if len(running) >= request["agents"] or time.monotonic() >= deadline:
            return {"running": len(running), "at": max((agent.started_at for agent in running), default=0.0)}
        await asyncio.sleep(POLL_SECONDS)


async def wait_for_contact(agents: dict[str, Agent], since: float, seconds: float) -> dict[str, Any]:
    """Wait until each agent has sent a report after `since` that was answered. Return when half and all had done so."""
    deadline, half_at = since + seconds, None
    while True:
        silent = [pod for pod, agent in agents.items() if agent.reported_at < since]
        now = time.monotonic()
        if half_at is None and len(silent) <= len(agents) / 2:
            half_at = now - since
        if not silent or now >= deadline:
            return {"agents": len(agents), "silent": len(silent), "half": half_at, "all": now - since}
        await asyncio.sleep(POLL_SECONDS)


async def serve(options: argparse.Namespace) -> None:
    """Run the agents, and answer requests until the end of standard input."""
    reader, loop = asyncio.StreamReader(limit=2**24), asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with connect(options.api, options.keys) as api:
        service, counters = CollectorService(api, options.namespace), Counters()
        site = Site(service.find_target, Timings(options.start_seconds, options.stop_seconds), counters)
        kubelet = Kubelet(api, site, options.namespace, service.trust)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(service.watch_endpoints()), group.create_task(kubelet.watch_pods())]
            async for line in reader:
                print(json.dumps(await answer(json.loads(line), kubelet.agents, counters)), flush=True)
            for task in tasks:
                task.cancel()


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--api", required=True, help="the URL of the API server")
    parser.add_argument("--keys", required=True, type=Path, help="the folder with the administrator's keys")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--start-seconds", type=float, default=Timings.start, help="the time until ranks run")
    parser.add_argument("--stop-seconds", type=float, default=Timings.stop, help="the time until stopped ranks end")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
