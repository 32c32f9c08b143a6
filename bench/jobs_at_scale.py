"""Measures jobs whose ranks run: their starts, failures and restarts, and an operator with many of them.

    PYTHONPATH=tests:bench python bench/jobs_at_scale.py PART ... [--jobs 100] [--pods 10]

Each part runs the operator as a process in a namespace of its own, and prints one JSON line:

- `failures`: a rank fails, in one job after the other; the time until the job's status says so;
- `failures-at-once`: a rank of each of `--jobs` jobs fails at the same time;
- `failed-pods`, `failed-pods-at-once`: the same with a pod that fails before its agent has reported;
- `restarts`: the start of one job of `--job-pods` pods, and its restarts in place: a rank fails, and all ranks of the
  next attempt start in the same pods;
- `soak`: `--jobs` jobs run for `--seconds`; the operator's memory in each twelfth of the time;
- `steady`: `--jobs` jobs run for `--seconds`. Then the operator is killed and starts again, and two standby replicas
  take over: from a leader that ends on SIGTERM, and from one that is killed.

The control plane is that of bench/scale.py. `simulated_agents` is a process with the agents of all pods: they speak the
shipped protocol over TLS, with tokens that the API server issues, at the shipped pace, but run no ranks. It shares the
machine's cores with the operator and the control plane.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from cluster import interruption
from cluster.programs import KUBERNETES
from cluster.shared import Kubectl
from muster.api.crd import format_crd_yaml
from muster.distribution import get_version
from scaling import control_plane, failures, nodes, restarts, steady
from scaling.api import Request, connect
from scaling.control_plane import ControlPlane
from scaling.muster_site import MusterSite, run_site

Part = Callable[[MusterSite, argparse.Namespace], Awaitable[dict[str, Any]]]

IDLE_SAMPLES = 40


async def measure_failures(site: MusterSite, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the failures of ranks of an otherwise idle operator."""
    return await failures.measure_ranks(site, IDLE_SAMPLES, options.pods, pause=failures.PAUSE_SECONDS)


async def measure_failures_at_once(site: MusterSite, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the failures of ranks of all jobs at once."""
    return await failures.measure_ranks(site, options.jobs, options.pods, pause=None)


async def measure_failed_pods(site: MusterSite, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the failures of pods of an otherwise idle operator."""
    return await failures.measure_pods(site, IDLE_SAMPLES, options.pods, pause=failures.PAUSE_SECONDS)


async def measure_failed_pods_at_once(site: MusterSite, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the failures of pods of all jobs at once."""
    return await failures.measure_pods(site, options.jobs, options.pods, pause=None)


async def measure_restarts(site: MusterSite, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the start of one large job, and its restarts in place."""
    return await restarts.measure(site, options.job_pods, options.restarts)


async def measure_steady(site: MusterSite, options: argparse.Namespace) -> dict[str, Any]:
    """Measure an operator with many running jobs, and its restart."""
    return await steady.measure(site, options.jobs, options.pods, options.seconds)


async def measure_soak(site: MusterSite, options: argparse.Namespace) -> dict[str, Any]:
    """Measure whether an operator with running jobs grows."""
    return await steady.measure_soak(site, options.jobs, options.pods, options.seconds)


PARTS: dict[str, Part] = {
    "failures": measure_failures,
    "failures-at-once": measure_failures_at_once,
    "failed-pods": measure_failed_pods,
    "failed-pods-at-once": measure_failed_pods_at_once,
    "restarts": measure_restarts,
    "soak": measure_soak,
    "steady": measure_steady,
}
WITHOUT_AGENTS = ("failed-pods", "failed-pods-at-once")


async def measure(cluster: ControlPlane, options: argparse.Namespace) -> None:
    """Measure all parts, one after the other."""
    async with connect(cluster.site.api, cluster.site.state.keys) as api:
        await api.send_all(
            [Request("POST", "/api/v1/nodes", nodes.build_node(number)) for number in range(options.nodes)]
        )
    for part in options.parts:
        await measure_part(cluster, part, options)


async def measure_part(cluster: ControlPlane, part: str, options: argparse.Namespace) -> None:
    """Measure a part, and print its result. If it fails, print why, so that the other parts are measured."""
    try:
        async with run_site(cluster, part, options.profile, with_agents=part not in WITHOUT_AGENTS) as site:
            result = await PARTS[part](site, options)
            agents = None if site.agents is None else await site.agents.request(do="count")
            refusals = [line for line in site.operator.said.splitlines() if "refused" in line][-5:]
    except (ExceptionGroup, RuntimeError, TimeoutError) as error:
        result, agents, refusals = {"error": "".join(traceback.format_exception(error))[-2000:]}, None, []
    print(json.dumps({"part": part, **result, "agents": agents, "refusals": refusals}), flush=True)


def main() -> None:
    """Start the control plane, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--jobs", type=int, default=100, help="how many jobs at once")
    parser.add_argument("--pods", type=int, default=10, help="the pods of each job")
    parser.add_argument("--job-pods", type=int, default=512, help="the pods of the large job of `restarts`")
    parser.add_argument("--restarts", type=int, default=1, help="how often it restarts; later restarts have a backoff")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long `steady` and `soak` measure")
    parser.add_argument("--nodes", type=int, default=nodes.NODES, help="simulated Kubernetes nodes")
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="where py-spy writes the operator's stacks")
    options = parser.parse_args()
    interruption.handle_signals()
    versions = {"muster": get_version(), "kubernetes": KUBERNETES, "python": platform.python_version()}
    print(json.dumps({"benchmark": "jobs_at_scale", "versions": versions, "cores": os.cpu_count()}), file=sys.stderr)
    with control_plane.run_control_plane() as cluster:
        Kubectl(cluster.site.state.kubeconfig).define(format_crd_yaml())
        asyncio.run(measure(cluster, options))


if __name__ == "__main__":
    main()
