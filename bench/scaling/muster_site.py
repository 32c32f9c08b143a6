"""A namespace with muster's operator, the simulated agents of its pods, and a watch of its jobs."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.helm import Helm
from cluster.operator.operator_process import OperatorProcess, Replicas, account, replicas
from cluster.shared import Kubectl
from scaling import control_plane, usage
from scaling.api import Api, PodTimes, Request, connect
from scaling.control_plane import ControlPlane
from scaling.job_watch import JobWatch, all_ranks_run
from scaling.run import make_namespace, profile
from scaling.workloads import make_muster_job

CONTROLLER_QPS, CONTROLLER_BURST = 500, 1000
PREFIX = "run-"


class AgentsProcess:
    """The process of the simulated agents."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def request(self, **request: object) -> Any:
        """Send a request, and return the answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the process has no pipes")
        stdin.write(json.dumps(request).encode() + b"\n")
        line = await stdout.readline()
        if not line:
            raise RuntimeError("the process of the simulated agents has ended")
        return json.loads(line)

    async def fail(self, ranks: Sequence[tuple[str, int]]) -> list[float]:
        """Let a rank of each pod fail: (pod, local rank). Return the times."""
        times: list[float] = await self.request(do="fail", ranks=ranks)
        return times

    async def wait_until_running(self, agents: int, *, attempt: int, seconds: float) -> float:
        """Wait until all ranks of this number of agents run in an attempt. Return the time."""
        answer = await self.request(do="wait_until_running", agents=agents, attempt=attempt, seconds=seconds)
        if answer["running"] < agents:
            raise RuntimeError(f"attempt {attempt}: the ranks of only {answer['running']} agents run")
        at: float = answer["at"]
        return at


@dataclass(frozen=True)
class MusterSite:
    """What the parts of the benchmark use."""

    cluster: ControlPlane
    api: Api
    namespace: str
    operators: Replicas
    agents: AgentsProcess | None
    jobs: JobWatch
    pods: PodTimes
    pids: dict[str, tuple[int, ...]]
    profiles: Path | None

    @property
    def operator(self) -> OperatorProcess:
        """The first operator."""
        return self.operators.started[0]

    def get_agents(self) -> AgentsProcess:
        """Return the process of the agents. Raises `RuntimeError` if the site has none."""
        if self.agents is None:
            raise RuntimeError("this site has no agents")
        return self.agents

    def profile(self) -> AbstractContextManager[None]:
        """Record the operator's stacks in the `with` block, if the user requests profiles."""
        if self.profiles is None:
            return nullcontext()
        return profile(self.operator.pids[0], self.profiles / f"{self.namespace}.txt")

    async def apply(self, names: Sequence[str], pods: int, **spec: object) -> float:
        """Create jobs of `pods` nodes. Return when the first request was sent."""
        started_at = time.monotonic()
        requests = [request for name in names for request in make_muster_job(self.namespace, name, pods)]
        for request in requests:
            request.body["spec"] |= spec
        await self.api.send_all(requests)
        return started_at

    async def start(self, names: Sequence[str], pods: int, seconds: float, **spec: object) -> float:
        """Create jobs, and wait until their statuses say that all ranks run. Return the seconds that this took."""
        started_at = await self.apply(names, pods, **spec)
        try:
            return max(await self.jobs.wait_for_all(list(names), all_ranks_run, seconds)) - started_at
        except TimeoutError:
            phases = {self.jobs.statuses.get(name, {}).get("message", "") for name in names}
            raise RuntimeError(f"not all ranks run after {seconds:.0f} s: {sorted(phases)[:5]}") from None

    def measure_cpu(self) -> dict[str, float]:
        """Return the CPU seconds of each component until now."""
        pids = {**self.pids, "operator": self.operator.pids}
        if self.agents is not None:
            pids["agents"] = (self.agents.process.pid,)
        used = {**{name: usage.measure_cpu_seconds(each) for name, each in pids.items()}, "client": time.process_time()}
        # Other programs of this machine distort the measurement.
        return {**used, "others": usage.measure_machine_cpu_seconds() - sum(used.values())}


@asynccontextmanager
async def run_site(
    cluster: ControlPlane, namespace: str, profiles: Path | None, *, with_agents: bool
) -> AsyncIterator[MusterSite]:
    """Run the operator in a new namespace, until the part of the benchmark ends. `profiles` is a folder or None."""
    state = cluster.site.state
    folder = state.folder / namespace
    folder.mkdir()
    kubectl = Kubectl(state.kubeconfig)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(connect(cluster.site.api, state.keys))
        controllers = stack.enter_context(
            control_plane.run_controller_manager(cluster, CONTROLLER_QPS, CONTROLLER_BURST)
        )
        await make_namespace(api, namespace)
        operator_account = account(kubectl, Helm(state.kubeconfig), namespace, folder)
        operators = stack.enter_context(replicas(kubectl, operator_account, namespace, folder, is_forked=False))
        await asyncio.to_thread(operators.start)
        agents = await stack.enter_async_context(run_agents(cluster, namespace)) if with_agents else None
        jobs, pods = JobWatch(), PodTimes(PREFIX)
        pids: dict[str, tuple[int, ...]] = {name: (pid,) for name, pid in cluster.pids.items()}
        pids[controllers.name] = (controllers.process.pid,)
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(each.watch(api, namespace)) for each in (jobs, pods)]
            yield MusterSite(cluster, api, namespace, operators, agents, jobs, pods, pids, profiles)
            for watch in watches:
                watch.cancel()


@asynccontextmanager
async def run_agents(cluster: ControlPlane, namespace: str) -> AsyncIterator[AgentsProcess]:
    """Run the simulated agents of a namespace."""
    options = (f"--api={cluster.site.api}", f"--keys={cluster.site.state.keys}", f"--namespace={namespace}")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "simulated_agents", *options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ,
        limit=2**24,
    )
    try:
        yield AgentsProcess(process)
    finally:
        process.kill()
        await process.wait()


async def delete_jobs(site: MusterSite, names: Sequence[str]) -> None:
    """Delete jobs, and wait until their pods no longer exist."""
    path = f"/apis/muster.dev/v1alpha1/namespaces/{site.namespace}/distributedtrainingjobs"
    await site.api.send_all([Request("DELETE", f"{path}/{name}") for name in names])
    while await site.api.list_items(f"/api/v1/namespaces/{site.namespace}/pods?limit=1"):  # noqa: ASYNC110 - not measured
        await asyncio.sleep(0.2)
