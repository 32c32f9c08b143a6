"""Renders the configuration of a node's containerd, CNI, kubelet and kube-proxy."""

import json
from pathlib import Path

from cluster import cgroups
from cluster.lan import DOMAIN, HOST, PODS, TAINT, TROUBLED, Node
from cluster.places import State

PAUSE_IMAGE = "cluster.muster.dev/pause:1"


def containerd(folder: Path, plugins: Path) -> str:
    """containerd's config.toml. Its folders have the usual names inside the node."""
    return f"""\
version = 2

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE, as in many build machines, every sandbox would die of lowering its score.
  restrict_oom_score_adj = true

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder / "cni"}"
"""


def cni(node: Node) -> str:
    """Return the CNI configuration of a node."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        # Pods see each other's own addresses; Open MPI 4 hangs if its peers connect from a node's address.
        "ipMasq": False,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": node.pods}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": "muster", "plugins": [bridge, ports]}, indent=2)


def kubelet(node: Node, state: State) -> str:
    """Return the kubelet's configuration. JSON is YAML."""
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(state.keys / "authority.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "clusterDNS": [HOST],
            "clusterDomain": DOMAIN,
            "resolvConf": str(state.node(node.name) / "resolv.conf"),
            "cgroupDriver": "cgroupfs",
            # The nodes share the machine's cgroups: each has a branch of them.
            "cgroupRoot": f"/{cgroups.BRANCH}/{node.name}",
            "registerWithTaints": [{"key": TAINT, "effect": "NoSchedule"}] if node == TROUBLED else [],
            "enforceNodeAllocatable": [],
            "failCgroupV1": False,
            "failSwapOn": False,
            "localStorageCapacityIsolation": False,
            "volumePluginDir": str(state.node(node.name) / "volume-plugins"),
            # Pods run even if the machine's disk is full.
            "evictionHard": {"memory.available": "50Mi"},
            "imageGCHighThresholdPercent": 100,
            "serializeImagePulls": False,
        },
        indent=2,
    )


def resolver() -> str:
    """Return a node's resolv.conf, for pods with the node's network: without it, each look-up would wait for 10 s.

    It has none of the machine's search domains, which pods don't need.
    """
    return f"nameserver {HOST}\n"


def kube_proxy(node: Node, state: State) -> str:
    """kube-proxy's configuration."""
    return json.dumps(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(state.keys / "kube-proxy.kubeconfig")},
            "hostnameOverride": node.name,
            "mode": "iptables",
            "clusterCIDR": PODS,
            # Don't change the machine's limits.
            "conntrack": {"maxPerCore": 0, "min": 0},
        },
        indent=2,
    )
