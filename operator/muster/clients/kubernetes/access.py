"""How a cluster is found and reached: the official client's configuration and connections, and nothing else of it.

The only module that imports `kubernetes`, which comes with the extra `cluster`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.incluster_config import SERVICE_HOST_ENV_NAME, load_incluster_config
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from muster.api.document import JSON
from muster.distribution import version

USER_AGENT = f"muster/{version()}"

_DEFAULT_KUBECONFIG = "~/.kube/config"
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_NAMESPACE = "default"
# What the official client raises over a kubeconfig that isn't as it expects.
_BAD_CONFIGURATION = (ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, KeyError, AttributeError)


class NoCluster(Exception):
    """No cluster is known, or what describes it is not usable. `message` and `remedy` are for people."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message} {remedy}")
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True)
class Access:
    """The way to one API server, with what proves who asks. `namespace` is the context's."""

    namespace: str
    configuration: Configuration
    _connections: RESTClientObject

    @property
    def url(self) -> str:
        """The API server's, without a slash at its end."""
        return str(self.configuration.host).rstrip("/")

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: JSON, limit: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """The answer, its body not yet read. Raises aiohttp's and the system's errors."""
        # Reads a pod's token again, once a minute.
        token = await self.configuration.get_api_key_with_prefix("BearerToken")
        proof = {"Authorization": token} if token else {}
        answer = await self._connections.request(  # type: ignore[no-untyped-call]
            method,
            self.url + path,
            headers={"User-Agent": USER_AGENT, **headers, **proof},
            body=body,
            _request_timeout=limit,
        )
        response: aiohttp.ClientResponse = answer.response
        return response

    async def open_session(self, response_class: type[aiohttp.ClientResponse]) -> aiohttp.ClientSession:
        """A session of its own, with what proves who asks, whose answers are of this class. The caller closes it."""
        token = await self.configuration.get_api_key_with_prefix("BearerToken")
        user, password = self.configuration.username, self.configuration.password
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._connections.ssl_context),
            headers={"User-Agent": USER_AGENT, **({"Authorization": token} if token else {})},
            auth=aiohttp.BasicAuth(user, password or "") if user and not token else None,
            response_class=response_class,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()
        # One that was just being opened is closed by the loop's next turn, which may be its last.
        await asyncio.sleep(0)


async def find(kubeconfig: str | None) -> Access:
    """Where kubectl would go: `kubeconfig` or $KUBECONFIG, else ~/.kube/config, else the pod's own cluster.

    Raises NoCluster.
    """
    named = kubeconfig if kubeconfig is not None else os.environ.get("KUBECONFIG", "")
    if named:
        return await _from_kubeconfig(named)
    if _exists(_DEFAULT_KUBECONFIG):
        return await _from_kubeconfig(_DEFAULT_KUBECONFIG)
    if os.environ.get(SERVICE_HOST_ENV_NAME):
        return _from_pod()
    raise NoCluster(
        f"No Kubernetes cluster is configured: $KUBECONFIG is not set, there is no {_DEFAULT_KUBECONFIG}, "
        "and this is not a pod.",
        "Set KUBECONFIG to the file that your cluster's provider gave you; `kubectl get nodes` should work.",
    )


async def _from_kubeconfig(paths: str) -> Access:
    if not _exists(paths):
        raise NoCluster(
            f"The kubeconfig {paths} does not exist.", "Set KUBECONFIG to the file that your cluster's provider gave."
        )
    try:
        merged = KubeConfigMerger(paths).config  # type: ignore[no-untyped-call]
        current = merged.safe_get("current-context")
        items = [str(context["name"]) for context in merged.safe_get("contexts") or ()]
    except _BAD_CONFIGURATION as problem:
        raise _unusable(paths, problem) from problem
    if current not in items:
        raise NoCluster(
            f'The kubeconfig {paths} has no context "{current}".' if current else f"{paths}: no context is chosen.",
            f"Choose one with `kubectl config use-context NAME`; there are: {', '.join(items) or 'none'}.",
        )
    configuration = _new_configuration()
    try:
        # No base path: each file of several has its own.
        loader = KubeConfigLoader(merged, active_context=current, config_base_path=None)  # type: ignore[no-untyped-call]
        await loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        context = loader.current_context["context"]
        return _opened(context.get("namespace") or _DEFAULT_NAMESPACE, configuration)
    except _BAD_CONFIGURATION as problem:
        raise _unusable(paths, problem) from problem


def _exists(paths: str) -> bool:
    return any(Path(path).expanduser().exists() for path in paths.split(os.pathsep) if path)


def _from_pod() -> Access:
    configuration = _new_configuration()
    try:
        load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        return _opened(_POD_NAMESPACE.read_text(encoding="utf-8").strip(), configuration)
    except _BAD_CONFIGURATION as problem:
        raise NoCluster(
            f"This pod has no usable service account token: {problem}.",
            "Leave automountServiceAccountToken on for it, or set KUBECONFIG.",
        ) from problem


def _new_configuration() -> Configuration:
    configuration = Configuration()
    # As kubectl: the authorities of many clusters lack an extension that Python 3.13 insists on.
    configuration.disable_strict_ssl_verification = True
    # How many requests are under way is bounded elsewhere; watches and logs must not wait for one another.
    configuration.connection_pool_maxsize = 0
    return configuration


def _opened(namespace: str, configuration: Configuration) -> Access:
    return Access(namespace, configuration, RESTClientObject(configuration))


def _unusable(paths: str, problem: Exception) -> NoCluster:
    # The others are what Python says of a file that isn't built as a kubeconfig is.
    is_told = isinstance(problem, ConfigException | yaml.YAMLError | OSError)
    why = str(problem) if is_told else "it is not built as a kubeconfig is"
    return NoCluster(f"The kubeconfig {paths} is not usable: {why}.", "`kubectl config view` shows what it says.")
