"""A paused leader (SIGSTOP, a frozen machine) takes no action before it has renewed the Lease.

If the main process is paused alone: tests/integration/controller/elector.
"""

import asyncio
import signal
from pathlib import Path

from cluster.api_proxy import ApiProxy
from cluster.installed.awaited import until
from cluster.operator.cluster_jobs import FOREVER, Jobs
from cluster.operator.operator_process import OperatorProcess, Replicas
from cluster.shared import Kubectl

KILLED_SECONDS = 60.0
CHANGES = {"create", "update", "patch", "delete"}
SETTLED_SECONDS = 5.0
"""Enough time for the actions of a leader that doesn't notice the pause."""


async def test_it_changes_nothing_once_it_goes_on(
    kubectl: Kubectl, operators: Replicas, jobs: Jobs, namespace: str, tmp_path: Path
) -> None:
    async with ApiProxy.serve(tmp_path, kubectl.kubeconfig) as proxy:
        first = OperatorProcess(kubectl, proxy.kubeconfig, namespace, tmp_path / "first.log")
        try:
            await asyncio.to_thread(first.start)
            await asyncio.to_thread(until, lambda: first.leads, KILLED_SECONDS)
            await asyncio.to_thread(jobs.apply, "long", FOREVER)
            await asyncio.to_thread(jobs.wait, "long", "jsonpath={.status.phase}=Running")
            second = await asyncio.to_thread(operators.start)
            first.pass_on(signal.SIGSTOP)
            await asyncio.to_thread(until, lambda: second.leads, KILLED_SECONDS)
            await asyncio.to_thread(jobs.apply, "new")
            before = len(proxy.calls)
            first.pass_on(signal.SIGCONT)
            await asyncio.to_thread(jobs.apply, "newer")
            await asyncio.to_thread(until, lambda: "is no longer the leader" in first.said, KILLED_SECONDS)
            await asyncio.sleep(SETTLED_SECONDS)
            made = [f"{call.verb} {call.resource} {call.name}" for call in proxy.calls[before:] if call.verb in CHANGES]
            assert made == []
            assert second.leads
        finally:
            await asyncio.to_thread(first.end)
