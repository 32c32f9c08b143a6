"""What a kubelet does for an agent: it gets the plan and the token, starts the agent, and reports its end."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from muster.objects.kubernetes.names import (
    JOB_LABEL,
    NODE_LABEL,
    PLAN_KEY,
    REPLACEMENT_LABEL,
    build_children_name,
)
from muster_worker.agent.exit_code import to_shell_exit_code
from muster_worker.contract import wire
from muster_worker.contract.schema import TOKEN_AUDIENCE, Plan
from muster_worker.exit_codes import STOPPED_EXIT_CODE
from scaling.api import Api, Request
from simulated_agents.agent import Agent, Identity, Site
from simulated_agents.report_template import Activity

TOKEN_SECONDS = 3600
_RENEW_AFTER = 0.8
"""The kubelet renews a token after this fraction of its life."""


@dataclass
class Kubelet:
    """Runs the agents of a namespace's pods. `agents` has them by the name of their pod."""

    api: Api
    site: Site
    namespace: str
    trust: Callable[[Plan], None]
    agents: dict[str, Agent] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _plans: dict[str, asyncio.Task[Plan]] = field(default_factory=dict)
    _sources: int = 0

    async def watch_pods(self) -> None:
        """Run an agent in each pod that runs, until cancelled."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?watch=1&timeoutSeconds=1800&labelSelector={JOB_LABEL}"
        async for change in self.api.follow(path):
            self._handle(change["type"], change["object"])

    def _handle(self, change: str, pod: Any) -> None:
        metadata = pod["metadata"]
        uid = metadata["uid"]
        # A benchmark lets a pod fail by its status.
        if change == "DELETED" or "deletionTimestamp" in metadata or pod["status"].get("phase") == "Failed":
            task = self._tasks.pop(uid, None)
            if task is not None:
                task.cancel()
        elif pod["status"].get("phase") == "Running" and uid not in self._tasks:
            self._tasks[uid] = asyncio.create_task(self._run_agent(pod))

    async def _run_agent(self, pod: Any) -> None:
        name, token = pod["metadata"]["name"], Token(self.api, pod)
        agent = Agent(await self._identify(pod), self.site, token.get)
        self.agents[name] = agent
        try:
            await agent.run()
        finally:
            if self.agents.get(name) is agent:
                del self.agents[name]
        await self._report_end(pod, agent)

    async def _identify(self, pod: Any) -> Identity:
        labels, address = pod["metadata"]["labels"], pod["status"]["podIP"]
        plan = await self._get_plan(labels[JOB_LABEL], pod["metadata"]["ownerReferences"][0]["uid"])
        # Each pod connects from an address of its own, because the collector limits connections by address.
        self._sources += 1
        source = f"127.{1 + self._sources // 62500}.{self._sources // 250 % 250}.{1 + self._sources % 250}"
        node, replacement = int(labels[NODE_LABEL]), int(labels[REPLACEMENT_LABEL])
        return Identity(
            *(labels[JOB_LABEL], plan.job_uid, node, replacement, plan.procs_per_node, plan.launcher, address, source)
        )

    async def _get_plan(self, job: str, job_uid: str) -> Plan:
        if job_uid not in self._plans:
            self._plans[job_uid] = asyncio.create_task(self._read_plan(job))
        return await asyncio.shield(self._plans[job_uid])

    async def _read_plan(self, job: str) -> Plan:
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{build_children_name(job)}"
        config_map = await self.api.send(Request("GET", path))
        plan = wire.decode(Plan, config_map["data"][PLAN_KEY].encode())
        self.trust(plan)
        return plan

    async def _report_end(self, pod: Any, agent: Agent) -> None:
        """Write the end of the pod's container."""
        exit_code = _compute_exit_code(agent)
        state = {"terminated": {"exitCode": exit_code, "reason": "Completed" if exit_code == 0 else "Error"}}
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}/status"
        statuses = [{**status, "ready": False, "state": state} for status in pod["status"]["containerStatuses"]]
        status = {"phase": "Failed" if exit_code else "Succeeded", "containerStatuses": statuses}
        await self.api.send(Request("PATCH", path, {"status": status}))


def _compute_exit_code(agent: Agent) -> int:
    if agent.activity is Activity.FAILED:
        return 1
    return to_shell_exit_code(None, 15) if agent.activity is Activity.STOPPED else STOPPED_EXIT_CODE


class Token:
    """A pod's service account token, which the API server issues and binds to the pod."""

    def __init__(self, api: Api, pod: Any) -> None:
        metadata = pod["metadata"]
        self._api = api
        account = pod["spec"]["serviceAccountName"]
        self._path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        self._body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [TOKEN_AUDIENCE],
                "expirationSeconds": TOKEN_SECONDS,
                "boundObjectRef": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                },
            },
        }
        self._request: asyncio.Task[str] | None = None
        self._renew_at = 0.0

    async def get(self) -> str:
        """Return the token, a new one when most of its life is over."""
        if self._request is None or time.monotonic() >= self._renew_at:
            self._renew_at = time.monotonic() + _RENEW_AFTER * TOKEN_SECONDS
            self._request = asyncio.create_task(self._issue())
        return self._request.result() if self._request.done() else await asyncio.shield(self._request)

    async def _issue(self) -> str:
        response = await self._api.send(Request("POST", self._path, self._body))
        token: str = response["status"]["token"]
        return token
