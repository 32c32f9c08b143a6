"""Read the usual kubeconfig without the official client, whose import takes longer than a short command may take.

The usual kubeconfig is one file with a server, its CA, and a token, a certificate or a plug-in for the credentials.
For any other configuration, such as a proxy, an auth provider or a pod's account, and for an unusable one, this module
returns None. Then `access.py` reads the configuration, or explains what is wrong with it.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies

import yaml

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_mappings, read_string

_DEFAULT_KUBECONFIG = "~/.kube/config"
_DEFAULT_NAMESPACE = "default"
_CLUSTER_FIELDS = {
    "server",
    "certificate-authority",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "tls-server-name",
}
_USER_FIELDS = {
    "token",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
    "exec",
}
_PLUGIN_SECONDS = 60.0


@dataclass(frozen=True)
class DirectAccess:
    """The API server of the current context. `tls` is None for http; `token` is "" without a token."""

    url: SplitResult
    namespace: str
    tls: ssl.SSLContext | None
    tls_server_name: str
    token: str


class _Unusual(Exception):
    """This module does not read this configuration."""


def find_direct_access(environment: Mapping[str, str]) -> DirectAccess | None:
    """Return the access of the kubeconfig's current context; None if it is not a usual one."""
    try:
        return _read_access(Path(environment.get("KUBECONFIG") or _DEFAULT_KUBECONFIG).expanduser(), environment)
    except (_Unusual, yaml.YAMLError, OSError, ValueError, subprocess.SubprocessError):
        return None


def _read_access(file: Path, environment: Mapping[str, str]) -> DirectAccess:
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    config = read_mapping(yaml.load(file.read_bytes(), Loader=loader))  # noqa: S506 - both read only plain values
    context = _find_entry(config, "context", read_string(config.get("current-context")))
    cluster = _find_entry(config, "cluster", read_string(context.get("cluster")))
    user = _find_entry(config, "user", read_string(context.get("user")))
    url = urlsplit(read_string(cluster.get("server")))
    if not url.hostname or url.path.strip("/") or url.scheme not in ("http", "https") or url.scheme in getproxies():
        raise _Unusual
    if cluster.keys() - _CLUSTER_FIELDS or user.keys() - _USER_FIELDS:
        raise _Unusual
    status = _ask_plugin(read_mapping(user["exec"]), environment) if "exec" in user else {}
    tls = _make_context(file.parent, cluster, user, status) if url.scheme == "https" else None
    return DirectAccess(
        url,
        read_string(context.get("namespace")) or _DEFAULT_NAMESPACE,
        tls,
        read_string(cluster.get("tls-server-name")) or url.hostname,
        read_string(status.get("token")) or read_string(user.get("token")),
    )


def _find_entry(config: Mapping[str, JSON], kind: str, name: str) -> Mapping[str, JSON]:
    """Return the content of the only cluster, context or user with this name."""
    entries = [entry for entry in read_mappings(config.get(f"{kind}s")) if entry.get("name") == name]
    if len(entries) != 1:
        raise _Unusual
    return read_mapping(entries[0].get(kind))


def _ask_plugin(plugin: Mapping[str, JSON], environment: Mapping[str, str]) -> Mapping[str, JSON]:
    """Run the plug-in for credentials, such as `aws eks get-token`; return the status of its ExecCredential."""
    version, arguments = read_string(plugin.get("apiVersion")), plugin.get("args") or []
    if not isinstance(arguments, list) or plugin.get("provideClusterInfo"):
        raise _Unusual
    request: JSON = {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {"interactive": sys.stdout.isatty()},
    }
    variables = {
        read_string(entry.get("name")): read_string(entry.get("value")) for entry in read_mappings(plugin.get("env"))
    }
    completed = subprocess.run(
        [read_string(plugin.get("command")), *map(str, arguments)],
        env={**environment, **variables, "KUBERNETES_EXEC_INFO": json.dumps(request)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_PLUGIN_SECONDS,
        check=True,
    )
    credential = read_mapping(json.loads(completed.stdout))
    if credential.get("apiVersion") != version:
        raise _Unusual
    return read_mapping(credential.get("status"))


def _make_context(
    folder: Path, cluster: Mapping[str, JSON], user: Mapping[str, JSON], status: Mapping[str, JSON]
) -> ssl.SSLContext:
    authority = _read_pem(folder, cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    # Like kubectl: the CA certificates of many clusters lack an extension that Python 3.13 requires.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = read_string(status.get("clientCertificateData")).encode() or _read_pem(
        folder, user, "client-certificate"
    )
    key = read_string(status.get("clientKeyData")).encode() or _read_pem(folder, user, "client-key")
    if certificate:
        _load_certificate(context, certificate, key)
    return context


def _read_pem(folder: Path, fields: Mapping[str, JSON], name: str) -> bytes:
    """Return the content of the file that a field names, or of the field with data; b"" if both are unset."""
    data, file = read_string(fields.get(f"{name}-data")), read_string(fields.get(name))
    if data:
        return base64.b64decode(data)
    return folder.joinpath(file).read_bytes() if file else b""


def _load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a client certificate. Python can load it only from a file, which only this user can read."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name)
