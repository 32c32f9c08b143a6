"""Finds the collector behind its Service, as kube-proxy and the cluster's DNS do."""

import ssl
from typing import Any
from urllib.parse import urlsplit

from muster_worker.contract.schema import Plan
from scaling.api import Api
from simulated_agents.connection import Target

LOOPBACK = "127.0.0.1"


class CollectorService:
    """The collector's Service. Its endpoint is on this machine, at the port that the leader has published."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._port: int | None = None
        self._name = ""
        self._context: ssl.SSLContext | None = None
        self._target: Target | None = None

    def find_target(self) -> Target | None:
        """Return the current endpoint; None without one."""
        return self._target

    def trust(self, plan: Plan) -> None:
        """Use the name and the authorities in a plan."""
        if self._context is None:
            self._name = urlsplit(plan.collector_url).hostname or ""
            self._context = ssl.create_default_context(cadata=plan.collector_ca)
            self._set_target()

    async def watch_endpoints(self) -> None:
        """Follow the Service's EndpointSlices until cancelled."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{self._namespace}/endpointslices?watch=1&timeoutSeconds=1800"
        async for change in self._api.follow(path):
            self._handle(change["object"])

    def _handle(self, endpoint_slice: Any) -> None:
        for port in endpoint_slice["ports"] or ():
            if port["name"] == "collector":
                self._port = port["port"]
                self._set_target()

    def _set_target(self) -> None:
        if self._port is not None and self._context is not None:
            self._target = Target((LOOPBACK, self._port), self._name, self._context)
