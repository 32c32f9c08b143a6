"""One run: a contestant creates the pods of a shape."""

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
from scaling import ground, usage
from scaling.api import Api, PodTimes, Request
from scaling.ground import Ground
from scaling.loads import MUSTER, Contestant, Shape

MEASURED, WARM_UP = "run-", "warm-up"
# What follows from the last pod's start, such as the jobs' last status, takes this long at most on an idle machine.
SETTLE_SECONDS = 3.0
LOOK_SECONDS = 0.05
POD_SECONDS = 120.0
PROFILE_SECONDS = 600


@dataclass(frozen=True)
class Bench:
    """The control plane, a client of it, and the folder for profiles of the operator, if there is one."""

    ground: Ground
    api: Api
    profiles: Path | None


@dataclass(frozen=True)
class Load:
    """Who creates how much, and where."""

    contestant: Contestant
    shape: Shape
    namespace: str

    @property
    def requests(self) -> list[Request]:
        """Return what the user sends."""
        names = [f"{MEASURED}{number}" for number in range(self.shape.jobs)]
        return [each for name in names for each in self.contestant.requests(self.namespace, name, self.shape.pods)]


@dataclass(frozen=True)
class Snapshot:
    """What was used until now."""

    requests: usage.Requests
    cpu: dict[str, float]


async def run(bench: Bench, contestant: Contestant, shape: Shape) -> dict[str, Any]:
    """Measure one contestant in a namespace of its own, and remove what it has created."""
    namespace = f"{contestant.name}-{shape.jobs}x{shape.pods}"
    pids = {name: (pid,) for name, pid in bench.ground.pids.items()}
    async with AsyncExitStack() as stack:
        controllers = stack.enter_context(ground.controllers(bench.ground, contestant.qps, contestant.burst))
        pids[controllers.name] = (controllers.process.pid,)
        await make_namespace(bench.api, namespace)
        if contestant is MUSTER:
            process = stack.enter_context(operator(bench.ground, namespace))
            pids["operator"] = process.pids
        times = await stack.enter_async_context(watched(bench.api, namespace))
        await warm_up(bench.api, contestant, namespace)
        if contestant is MUSTER and bench.profiles:
            stack.enter_context(profile(pids["operator"][0], bench.profiles / f"{namespace}.txt"))
        result = await measure(bench.api, Load(contestant, shape, namespace), times, pids)
    await remove(bench.api, contestant, namespace)
    return result


async def make_namespace(api: Api, namespace: str) -> None:
    """Create a namespace, and wait for the account that its pods need."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await api.send(Request("POST", "/api/v1/namespaces", body))
    await until_any(api, f"/api/v1/namespaces/{namespace}/serviceaccounts")


@contextmanager
def operator(at: Ground, namespace: str) -> Iterator[OperatorProcess]:
    """Run muster's operator with the permissions of the chart. Agents don't reach it: no pod really runs."""
    state = at.site.state
    folder = state.folder / namespace
    folder.mkdir()
    kubectl = Kubectl(state.kubeconfig)
    rights = account(kubectl, Helm(state.kubeconfig), namespace, folder)
    with replicas(kubectl, rights, namespace, folder) as started:
        yield started.start()


@asynccontextmanager
async def watched(api: Api, namespace: str) -> AsyncIterator[PodTimes]:
    """Follow the pods that are measured, and those of the warm-up."""
    times = PodTimes(MEASURED)
    # A watch that fails ends the measurement.
    async with asyncio.TaskGroup() as group:
        following = group.create_task(times.follow(api, namespace))
        yield times
        following.cancel()


async def warm_up(api: Api, contestant: Contestant, namespace: str) -> None:
    """Let each component create and run one pod, so that it has connections and caches."""
    await api.send_all(contestant.requests(namespace, WARM_UP, 1))
    await until_any(api, f"/api/v1/namespaces/{namespace}/pods?fieldSelector=status.phase%3DRunning")


async def until_any(api: Api, path: str) -> None:
    """Wait until a list has an item."""
    async with asyncio.timeout(POD_SECONDS):
        while not await api.items(path):  # noqa: ASYNC110 - a look now and then is enough before the measurement
            await asyncio.sleep(LOOK_SECONDS)


@contextmanager
def profile(pid: int, file: Path) -> Iterator[None]:
    """Let py-spy, which must be on the PATH, record the operator's stacks: one a line, with the number of samples."""
    options = (f"--pid={pid}", f"--output={file}", "--format=raw", f"--duration={PROFILE_SECONDS}", "--nonblocking")
    recorder = subprocess.Popen(["py-spy", "record", *options], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        recorder.send_signal(2)
        recorder.wait(ground.END_SECONDS)


async def measure(api: Api, load: Load, times: PodTimes, pids: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Create all jobs, and return times and usage until shortly after the last pod runs."""
    contestant, shape, namespace, requests = load.contestant, load.shape, load.namespace, load.requests
    before = await snapshot(api, pids)
    begun = time.monotonic()
    await api.send_all(requests)
    applied = time.monotonic()
    try:
        async with asyncio.timeout(POD_SECONDS):
            await times.wait_for(shape.all_pods)
    except TimeoutError:
        found = f"{len(times.created)} created, {len(times.running)} running"
        raise RuntimeError(f"{namespace}: of {shape.all_pods} pods only {found} after {POD_SECONDS:.0f} s") from None
    await asyncio.sleep(SETTLE_SECONDS)
    after = await snapshot(api, pids)
    return {
        "shape": shape.name,
        "contestant": contestant.name,
        "controller_manager_qps": contestant.qps,
        "seconds": {
            "applied": round(applied - begun, 2),
            "first_pod": round(min(times.created.values()) - begun, 2),
            "created": round(max(times.created.values()) - begun, 2),
            "running": round(max(times.running.values()) - begun, 2),
        },
        "pods": {"created": len(times.created), "deleted": times.deleted, "watch_restarts": times.restarts},
        "cpu_seconds": usage.differences(before.cpu, after.cpu),
        "operator_peak_mib": usage.peak_mib(pids["operator"]) if "operator" in pids else None,
        "requests": usage.summarise_requests(after.requests - before.requests, contestant.job_resource, shape.all_pods),
    }


async def snapshot(api: Api, pids: dict[str, tuple[int, ...]]) -> Snapshot:
    """Read what was used until now. This process's share is "client"."""
    requests = usage.read_requests(await api.text("/metrics"))
    cpu = {name: usage.cpu_seconds(each) for name, each in pids.items()}
    return Snapshot(requests, {**cpu, "client": time.process_time()})


async def remove(api: Api, contestant: Contestant, namespace: str) -> None:
    """Delete the jobs and the pods, while no controller runs that would wait for its limit of requests."""
    if contestant.job_resource:
        await remove_all(api, f"/{contestant.jobs_path}/namespaces/{namespace}/{contestant.job_resource}")
    await remove_all(api, f"/api/v1/namespaces/{namespace}/pods")


async def remove_all(api: Api, path: str) -> None:
    """Delete each object of a list, whoever has a finalizer on it."""
    metadata = [each["metadata"] for each in await api.items(path)]
    no_finalizers = {"metadata": {"finalizers": None}}
    held = [f"{path}/{each['name']}" for each in metadata if each.get("finalizers")]
    await api.send_all([Request("PATCH", each, no_finalizers) for each in held])
    at_once = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    await api.send_all([Request("DELETE", f"{path}/{each['name']}", at_once) for each in metadata])
