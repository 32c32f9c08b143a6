"""Measures how long muster takes until all pods of large jobs run, compared with Indexed Jobs, on one API server.

    PYTHONPATH=tests:bench python bench/scale.py [--pods 512] [--jobs 100] [--job-pods 10] [--only muster]

It runs one job of `--pods` pods, and `--jobs` jobs of `--job-pods` pods at once. Both options may have several numbers.
Each is created by:

- `bare-client`: a client that creates muster's pods directly, with 64 requests in flight;
- `indexed-job`: Indexed Jobs, the controller manager at its defaults (20 requests per second, bursts of 30);
- `indexed-job-500`: the same at 500 requests per second;
- `muster`: the operator as a process.

etcd (which doesn't sync its files), API server, controller manager and scheduler are real, and use TLS on loopback.
kwok simulates the kubelets of 600 nodes: no container runs, so no agent and no rank starts. The times end when the last
pod is Running. The usage counts from just before the jobs are applied until 3 s after the last pod is Running. It has
the CPU seconds of each component, and the requests of all components as the API server counts them. The scheduler may
send 1,000 requests per second.

With `--profile FOLDER`, py-spy records the operator's stacks there, and the API server its own CPU profile of the first
20 s, for `go tool pprof`. Prints one JSON line.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster import interruption
from cluster.programs import KUBERNETES
from cluster.shared import Kubectl
from muster.api.crd import format_crd_yaml
from muster.distribution import get_version
from scaling import control_plane, nodes
from scaling.api import MAX_IN_FLIGHT, Request, connect
from scaling.components import SCHEDULER_QPS
from scaling.control_plane import ControlPlane
from scaling.run import SETTLE_SECONDS, Benchmark, run
from scaling.workloads import POD_CREATORS, PodCreator, Shape


async def measure_all(
    cluster: ControlPlane, shapes: Sequence[Shape], pod_creators: Sequence[PodCreator], profiles: Path | None
) -> list[dict[str, Any]]:
    """Measure each creator of pods with each shape, one after the other."""
    results = []
    async with connect(cluster.site.api, cluster.site.state.keys) as api:
        await api.send_all(
            [Request("POST", "/api/v1/nodes", nodes.build_node(number)) for number in range(nodes.NODES)]
        )
        for shape in shapes:
            for pod_creator in pod_creators:
                result = await run(Benchmark(cluster, api, profiles), pod_creator, shape)
                print(f"{shape.name} {pod_creator.name}: {result['seconds']}", file=sys.stderr, flush=True)
                results.append(result)
    return results


def main() -> None:
    """Start the control plane, measure, and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, nargs="+", default=[512], help="the pods of the one job; 0 to leave it out")
    parser.add_argument("--jobs", type=int, nargs="+", default=[100], help="how many jobs at once; 0 to leave them out")
    parser.add_argument("--job-pods", type=int, default=10, help="the pods of each of them")
    parser.add_argument("--only", nargs="+", choices=[creator.name for creator in POD_CREATORS])
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="where py-spy writes the operator's stacks")
    options = parser.parse_args()
    interruption.handle_signals()
    single_jobs = [Shape(1, pods) for pods in options.pods]
    many_jobs = [Shape(jobs, options.job_pods) for jobs in options.jobs]
    shapes = [shape for shape in (*single_jobs, *many_jobs) if shape.all_pods]
    pod_creators = [creator for creator in POD_CREATORS if not options.only or creator.name in options.only]
    with control_plane.run_control_plane() as cluster:
        Kubectl(cluster.site.state.kubeconfig).define(format_crd_yaml())
        results = asyncio.run(measure_all(cluster, shapes, pod_creators, options.profile))
    settings = {
        "nodes": nodes.NODES,
        "requests_in_flight": MAX_IN_FLIGHT,
        "scheduler_qps": SCHEDULER_QPS,
        "settle_seconds": SETTLE_SECONDS,
        "agents": "none: the pods are simulated by kwok, so no rank starts",
        "cores": os.cpu_count(),
    }
    versions = {"muster": get_version(), "kubernetes": KUBERNETES, "python": platform.python_version()}
    print(json.dumps({"benchmark": "scale", "versions": versions, "settings": settings, "runs": results}))


if __name__ == "__main__":
    main()
