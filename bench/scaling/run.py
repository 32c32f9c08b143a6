"""Measures one creator of pods with one shape of jobs."""

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.helm import Helm
from cluster.operator.operator_process import OperatorProcess, account, replicas
from cluster.shared import Kubectl
from scaling import control_plane, usage
from scaling.api import Api, PodTimes, Request
from scaling.control_plane import ControlPlane
from scaling.workloads import MUSTER, PodCreator, Shape

MEASURED_PREFIX, WARM_UP_NAME = "run-", "warm-up"
# On an idle machine the controllers finish within this time after the last pod's start: they write the jobs' statuses.
SETTLE_SECONDS = 3.0
POLL_SECONDS = 0.05
BASE_SECONDS, SECONDS_PER_POD = 60.0, 0.05
PROFILE_SECONDS = 600
API_PROFILE_SECONDS = 20


@dataclass(frozen=True)
class Benchmark:
    """The control plane, a client of it, and the folder for profiles of the operator, if there is one."""

    control_plane: ControlPlane
    api: Api
    profiles: Path | None


@dataclass(frozen=True)
class Workload:
    """The jobs of one measurement: their creator, their shape and their namespace."""

    pod_creator: PodCreator
    shape: Shape
    namespace: str

    @property
    def requests(self) -> list[Request]:
        """Return the requests of the user."""
        names = [f"{MEASURED_PREFIX}{number}" for number in range(self.shape.jobs)]
        return [
            request for name in names for request in self.pod_creator.requests(self.namespace, name, self.shape.pods)
        ]


@dataclass(frozen=True)
class Snapshot:
    """The requests to the API server and the CPU seconds of each component until now."""

    requests: usage.Requests
    cpu: dict[str, float]


async def run(benchmark: Benchmark, pod_creator: PodCreator, shape: Shape) -> dict[str, Any]:
    """Measure one creator of pods in its own namespace, and delete its objects."""
    namespace = f"{pod_creator.name}-{shape.jobs}x{shape.pods}"
    pids: dict[str, tuple[int, ...]] = {name: (pid,) for name, pid in benchmark.control_plane.pids.items()}
    async with AsyncExitStack() as stack:
        controllers = stack.enter_context(
            control_plane.run_controller_manager(benchmark.control_plane, pod_creator.qps, pod_creator.burst)
        )
        pids[controllers.name] = (controllers.process.pid,)
        await make_namespace(benchmark.api, namespace)
        if pod_creator is MUSTER:
            process = stack.enter_context(operator(benchmark.control_plane, namespace))
            pids["operator"] = process.pids
        times = await stack.enter_async_context(watch_pods(benchmark.api, namespace))
        await warm_up(benchmark.api, pod_creator, namespace)
        if benchmark.profiles:
            await stack.enter_async_context(
                profile_api_server(benchmark.api, benchmark.profiles / f"{namespace}.pprof")
            )
            if pod_creator is MUSTER:
                stack.enter_context(profile(pids["operator"][0], benchmark.profiles / f"{namespace}.txt"))
        result = await measure(benchmark.api, Workload(pod_creator, shape, namespace), times, pids)
    await delete_jobs_and_pods(benchmark.api, pod_creator, namespace)
    return result


async def make_namespace(api: Api, namespace: str) -> None:
    """Create a namespace, and wait for the service account that its pods need."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await api.send(Request("POST", "/api/v1/namespaces", body))
    await wait_until_any(api, f"/api/v1/namespaces/{namespace}/serviceaccounts")


@contextmanager
def operator(control_plane: ControlPlane, namespace: str) -> Iterator[OperatorProcess]:
    """Run muster's operator with the permissions of the chart. No agent connects, because no container runs."""
    state = control_plane.site.state
    folder = state.folder / namespace
    folder.mkdir()
    kubectl = Kubectl(state.kubeconfig)
    operator_account = account(kubectl, Helm(state.kubeconfig), namespace, folder)
    with replicas(kubectl, operator_account, namespace, folder, is_forked=False) as operators:
        yield operators.start()


@asynccontextmanager
async def watch_pods(api: Api, namespace: str) -> AsyncIterator[PodTimes]:
    """Watch the measured pods and the pods of the warm-up."""
    times = PodTimes(MEASURED_PREFIX)
    # If the watch fails, the measurement fails.
    async with asyncio.TaskGroup() as group:
        watch_task = group.create_task(times.watch(api, namespace))
        yield times
        watch_task.cancel()


async def warm_up(api: Api, pod_creator: PodCreator, namespace: str) -> None:
    """Let each component create and run one pod, so that it has connections and caches."""
    await api.send_all(pod_creator.requests(namespace, WARM_UP_NAME, 1))
    await wait_until_any(api, f"/api/v1/namespaces/{namespace}/pods?fieldSelector=status.phase%3DRunning")


async def wait_until_any(api: Api, path: str) -> None:
    """Wait until a list has an item."""
    async with asyncio.timeout(BASE_SECONDS):
        while not await api.list_items(path):  # noqa: ASYNC110 - polling is enough before the measurement
            await asyncio.sleep(POLL_SECONDS)


@contextmanager
def profile(pid: int, file: Path) -> Iterator[None]:
    """Record the operator's stacks with py-spy, which must be on PATH. A line has one stack and its samples."""
    options = (
        f"--pid={pid}",
        f"--output={file}",
        "--format=raw",
        f"--duration={PROFILE_SECONDS}",
        "--rate=200",
        "--nonblocking",
    )
    recorder = subprocess.Popen(["py-spy", "record", *options], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        recorder.send_signal(2)
        recorder.wait(control_plane.END_SECONDS)


@asynccontextmanager
async def profile_api_server(api: Api, file: Path) -> AsyncIterator[None]:
    """Record the CPU profile of the API server for `go tool pprof`, for 20 s."""
    task = asyncio.create_task(api.read(f"/debug/pprof/profile?seconds={API_PROFILE_SECONDS}"))
    yield
    await asyncio.to_thread(file.write_bytes, await task)


async def measure(api: Api, workload: Workload, times: PodTimes, pids: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Create all jobs, and return times and usage until shortly after the last pod runs."""
    pod_creator, shape, namespace, requests = (
        workload.pod_creator,
        workload.shape,
        workload.namespace,
        workload.requests,
    )
    before = await snapshot(api, pids)
    started_at = time.monotonic()
    await api.send_all(requests)
    applied_at = time.monotonic()
    # A measurement without an end says nothing: this is several times what the slowest creator needs.
    patience = BASE_SECONDS + SECONDS_PER_POD * shape.all_pods
    try:
        async with asyncio.timeout(patience):
            await times.wait_for(shape.all_pods)
    except TimeoutError:
        counts = f"{len(times.created)} created, {len(times.running)} running"
        raise RuntimeError(f"{namespace}: of {shape.all_pods} pods only {counts} after {patience:.0f} s") from None
    await asyncio.sleep(SETTLE_SECONDS)
    after = await snapshot(api, pids)
    return {
        "shape": shape.name,
        "creator": pod_creator.name,
        "controller_manager_qps": pod_creator.qps,
        "seconds": {
            "applied": round(applied_at - started_at, 2),
            "first_pod": round(min(times.created.values()) - started_at, 2),
            "created": round(max(times.created.values()) - started_at, 2),
            "running": round(max(times.running.values()) - started_at, 2),
        },
        "pods": {"created": len(times.created), "deleted": times.deleted, "watch_restarts": times.restarts},
        "cpu_seconds": usage.compute_differences(before.cpu, after.cpu),
        "operator_peak_mib": usage.measure_peak_mib(pids["operator"]) if "operator" in pids else None,
        "requests": usage.summarise_requests(
            after.requests - before.requests, pod_creator.job_resource, shape.all_pods
        ),
    }


async def snapshot(api: Api, pids: dict[str, tuple[int, ...]]) -> Snapshot:
    """Read the usage until now. The component "client" is this process."""
    requests = usage.read_requests(await api.get_text("/metrics"))
    cpu = {name: usage.measure_cpu_seconds(each) for name, each in pids.items()}
    return Snapshot(requests, {**cpu, "client": time.process_time()})


async def delete_jobs_and_pods(api: Api, pod_creator: PodCreator, namespace: str) -> None:
    """Delete the jobs and the pods. No controller runs at this time, so no request limit delays the deletion."""
    if pod_creator.job_resource:
        await delete_all(api, f"/{pod_creator.jobs_path}/namespaces/{namespace}/{pod_creator.job_resource}")
    await delete_all(api, f"/api/v1/namespaces/{namespace}/pods")


async def delete_all(api: Api, path: str) -> None:
    """Remove the finalizers of each object in a list, and delete it."""
    metadata = [item["metadata"] for item in await api.list_items(path)]
    finalizer_patch = {"metadata": {"finalizers": None}}
    paths_with_finalizers = [f"{path}/{item['name']}" for item in metadata if item.get("finalizers")]
    await api.send_all([Request("PATCH", path, finalizer_patch) for path in paths_with_finalizers])
    delete_options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    await api.send_all([Request("DELETE", f"{path}/{item['name']}", delete_options) for item in metadata])
