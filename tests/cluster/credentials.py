"""Certificates, keys and kubeconfigs of a start, as files for the components."""

import base64
import datetime as dt
import json
import os
from pathlib import Path

from cluster.authority import Authority, Pair, account_key
from cluster.lan import ALL_NODES, API, API_SERVICE, DOMAIN, HOST
from cluster.places import State

# Component, user and group; the API server has roles for these.
CLIENTS = (
    ("kube-controller-manager", "system:kube-controller-manager", ""),
    ("kube-scheduler", "system:kube-scheduler", ""),
    ("kube-proxy", "system:kube-proxy", ""),
    *((node.name, f"system:node:{node.name}", "system:nodes") for node in ALL_NODES),
)
ADMINISTRATOR = ("muster-cluster-admin", "system:masters")


def write(state: State, now: dt.datetime) -> None:
    """Write all files below `state.keys`, and the administrator's kubeconfig."""
    state.keys.mkdir(parents=True, exist_ok=True)
    authority = Authority(now)
    kubernetes = "kubernetes.default.svc"
    names = ("kubernetes", "kubernetes.default", kubernetes, f"{kubernetes}.{DOMAIN}", "localhost")
    save(state, "authority", authority.pair)
    save(state, "kube-apiserver", authority.issue("kube-apiserver", hosts=[*names, HOST, API_SERVICE, "127.0.0.1"]))
    save(state, "etcd", authority.issue("etcd", hosts=[HOST]))
    save(state, "kubelet-client", authority.issue("kube-apiserver-kubelet-client", ADMINISTRATOR[1]))
    private_file(state.keys / "accounts.key", account_key())
    for component, user, group in CLIENTS:
        kubeconfig(state.keys / f"{component}.kubeconfig", authority.pair, authority.issue(user, group))
    kubeconfig(state.kubeconfig, authority.pair, authority.issue(*ADMINISTRATOR))


def save(state: State, name: str, pair: Pair) -> None:
    """Write a pair as name.crt and name.key."""
    (state.keys / f"{name}.crt").write_bytes(pair.certificate)
    private_file(state.keys / f"{name}.key", pair.key)


def kubeconfig(file: Path, authority: Pair, client: Pair, server: str = API) -> None:
    """A client's kubeconfig with embedded certificates, so that the file is complete. JSON is YAML."""
    name = "muster-cluster"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [
            {"name": name, "cluster": {"server": server, "certificate-authority-data": encoded(authority.certificate)}}
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": encoded(client.certificate),
                    "client-key-data": encoded(client.key),
                },
            }
        ],
    }
    private_file(file, json.dumps(document, indent=2).encode())


def encoded(data: bytes) -> str:
    """Encode data as in kubeconfigs."""
    return base64.b64encode(data).decode("ascii")


def private_file(file: Path, content: bytes) -> None:
    """Write a file that other users can never read."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as output:
        output.write(content)
