"""Find the cluster and connect to it, by the configuration and the connections of the official client.

This is the only module that imports `kubernetes`, which the extra `cluster` installs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.incluster_config import SERVICE_HOST_ENV_NAME, load_incluster_config
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from muster.api.document import JSON
from muster.clients.kubernetes.connector import AbortingConnector
from muster.clients.kubernetes.request_settings import USER_AGENT

_DEFAULT_KUBECONFIG = "~/.kube/config"
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_NAMESPACE = "default"
# The errors that the official client raises for a malformed kubeconfig.
_BAD_CONFIGURATION = (ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, KeyError, AttributeError)


class NoCluster(Exception):
    """No cluster is configured, or its configuration can't be used. Users see `message` and `remedy`."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message} {remedy}")
        self.message = message
        self.remedy = remedy


class _Connections(RESTClientObject):
    """The official client's connections, which `close` ends at once."""

    def _create_connector(self) -> AbortingConnector:
        return AbortingConnector(self.ssl_context)


@dataclass(frozen=True)
class ClusterAccess:
    """The connection to an API server, with the caller's credentials. `namespace` is the context's."""

    namespace: str
    configuration: Configuration
    _connections: RESTClientObject

    @property
    def url(self) -> str:
        """The API server's URL, without a trailing slash."""
        return str(self.configuration.host).rstrip("/")

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: JSON, limit: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Send a request; return the response before its body is read. Raises aiohttp's and the system's errors."""
        # The official client reads a pod's token again once a minute.
        token = await self.configuration.get_api_key_with_prefix("BearerToken")
        authorization = {"Authorization": token} if token else {}
        result = await self._connections.request(  # type: ignore[no-untyped-call]
            method,
            self.url + path,
            headers={"User-Agent": USER_AGENT, **headers, **authorization},
            body=body,
            _request_timeout=limit,
        )
        response: aiohttp.ClientResponse = result.response
        return response

    async def open_session(self, response_class: type[aiohttp.ClientResponse]) -> aiohttp.ClientSession:
        """Open a new session with the caller's credentials and this response class. The caller closes it."""
        token = await self.configuration.get_api_key_with_prefix("BearerToken")
        user, password = self.configuration.username, self.configuration.password
        return aiohttp.ClientSession(
            connector=AbortingConnector(self._connections.ssl_context),
            headers={"User-Agent": USER_AGENT, **({"Authorization": token} if token else {})},
            auth=aiohttp.BasicAuth(user, password or "") if user and not token else None,
            response_class=response_class,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()


async def find_cluster(kubeconfig: str | None, context: str | None = None) -> ClusterAccess:
    """Find the cluster that kubectl uses: of `kubeconfig` or $KUBECONFIG, else of ~/.kube/config, else the pod's own.

    `context` is a context of the kubeconfig; None: its current one. Raises NoCluster.
    """
    paths = kubeconfig if kubeconfig is not None else os.environ.get("KUBECONFIG", "")
    if paths:
        return await _load_kubeconfig(paths, context)
    if _exists(_DEFAULT_KUBECONFIG):
        return await _load_kubeconfig(_DEFAULT_KUBECONFIG, context)
    if context is not None:
        raise NoCluster(f'There is no kubeconfig with the context "{context}".', "Set KUBECONFIG to a kubeconfig.")
    if os.environ.get(SERVICE_HOST_ENV_NAME):
        return _load_pod_configuration()
    raise NoCluster(
        f"No Kubernetes cluster is configured: $KUBECONFIG is not set, there is no {_DEFAULT_KUBECONFIG}, "
        "and this is not a pod.",
        "Set KUBECONFIG to your cluster's kubeconfig; `kubectl get nodes` should work.",
    )


async def _load_kubeconfig(paths: str, context: str | None) -> ClusterAccess:
    if not _exists(paths):
        raise NoCluster(f"The kubeconfig {paths} does not exist.", "Set KUBECONFIG to your cluster's kubeconfig.")
    try:
        merged = KubeConfigMerger(paths).config  # type: ignore[no-untyped-call]
        current = merged.safe_get("current-context") if context is None else context
        context_names = [str(context["name"]) for context in merged.safe_get("contexts") or ()]
    except _BAD_CONFIGURATION as problem:
        raise _make_kubeconfig_error(paths, problem) from problem
    if current not in context_names:
        raise NoCluster(
            f'The kubeconfig {paths} has no context "{current}".' if current else f"{paths} has no current context.",
            f"Choose one by `kubectl config use-context NAME`; there are: {', '.join(context_names) or 'none'}.",
        )
    configuration = _make_configuration()
    try:
        # No base path: each file of the kubeconfig has its own.
        loader = KubeConfigLoader(merged, active_context=current, config_base_path=None)  # type: ignore[no-untyped-call]
        await loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        namespace = loader.current_context["context"].get("namespace")
        return _open_access(namespace or _DEFAULT_NAMESPACE, configuration)
    except _BAD_CONFIGURATION as problem:
        raise _make_kubeconfig_error(paths, problem) from problem


def _exists(paths: str) -> bool:
    return any(Path(path).expanduser().exists() for path in paths.split(os.pathsep) if path)


def _load_pod_configuration() -> ClusterAccess:
    configuration = _make_configuration()
    try:
        load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        return _open_access(_POD_NAMESPACE.read_text(encoding="utf-8").strip(), configuration)
    except _BAD_CONFIGURATION as problem:
        raise NoCluster(
            f"This pod has no usable service account token: {problem}.",
            "Enable automountServiceAccountToken, or set KUBECONFIG.",
        ) from problem


def _make_configuration() -> Configuration:
    configuration = Configuration()
    # Like kubectl: the CA certificates of many clusters lack an extension that Python 3.13 requires.
    configuration.disable_strict_ssl_verification = True
    # No limit here: watches and logs must not wait for one another.
    configuration.connection_pool_maxsize = 0
    return configuration


def _open_access(namespace: str, configuration: Configuration) -> ClusterAccess:
    configuration.proxy = configuration.proxy or _find_proxy_in_environment(str(configuration.host))
    # Otherwise aiohttp would search the environment and ~/.netrc again for each request: a fifth of the CPU time when
    # many pods are created.
    configuration.client_session_kwargs = {"trust_env": False}
    return ClusterAccess(namespace, configuration, _Connections(configuration))


def _find_proxy_in_environment(url: str) -> str | None:
    """Return the proxy that the environment sets for this URL, as kubectl uses it, if any."""
    parts = urlsplit(url)
    if parts.hostname is None or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)


def _make_kubeconfig_error(paths: str, problem: Exception) -> NoCluster:
    # Other exceptions come from an unexpected structure, and their messages don't help users.
    has_reason = isinstance(problem, ConfigException | yaml.YAMLError | OSError)
    reason = str(problem) if has_reason else "it does not have the structure of a kubeconfig"
    return NoCluster(f"The kubeconfig {paths} is not usable: {reason}.", "`kubectl config view` shows its content.")
