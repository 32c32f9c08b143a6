"""The command lines of a control plane on loopback, and its keys."""

import datetime as dt
from dataclasses import dataclass, field

from cluster import credentials
from cluster.authority import Authority, account_key
from cluster.places import State
from cluster.programs import Programs
from support.free_port import free_port

HOST = "127.0.0.1"
# With its default limit of 50 requests per second, the scheduler would be the bottleneck of every measurement.
SCHEDULER_QPS = 1000
# Nothing renews the Leases of simulated nodes, so turn off the controllers that would taint or annotate the nodes.
CONTROLLERS = "--controllers=*,-nodeipam,-nodelifecycle,-ttl"


@dataclass(frozen=True)
class Ports:
    """Free ports of this machine."""

    etcd: int = field(default_factory=free_port)
    etcd_peers: int = field(default_factory=free_port)
    api: int = field(default_factory=free_port)
    controller_manager: int = field(default_factory=free_port)
    scheduler: int = field(default_factory=free_port)
    kwok: int = field(default_factory=free_port)


@dataclass(frozen=True)
class Site:
    """The programs, the folder with keys and logs, and the ports."""

    programs: Programs
    state: State
    ports: Ports

    @property
    def api(self) -> str:
        """The URL of the API server."""
        return f"https://{HOST}:{self.ports.api}"

    def list_key_options(self, name: str, *options: str) -> list[str]:
        """Return the options for the files of `name`: authority, certificate and key, in this order."""
        files = ("authority.crt", f"{name}.crt", f"{name}.key")
        return [f"{option}={self.state.keys / file}" for option, file in zip(options, files, strict=True)]


def write_keys(site: Site, now: dt.datetime) -> None:
    """Write all certificates, keys and kubeconfigs."""
    state = site.state
    state.keys.mkdir(parents=True)
    authority = Authority(now)
    credentials.save(state, "authority", authority.pair)
    for server in ("etcd", "kube-apiserver"):
        credentials.save(state, server, authority.issue(server, hosts=[HOST]))
    credentials.private_file(state.keys / "accounts.key", account_key())
    administrator = authority.issue(*credentials.ADMINISTRATOR)
    credentials.save(state, "administrator", administrator)
    credentials.kubeconfig(state.kubeconfig, authority.pair, administrator, site.api)
    for name in ("kube-controller-manager", "kube-scheduler"):
        file = state.keys / f"{name}.kubeconfig"
        credentials.kubeconfig(file, authority.pair, authority.issue(f"system:{name}"), site.api)


def build_etcd_command(site: Site) -> list[str]:
    """Return the command of etcd, which doesn't sync its files."""
    clients, peers = (f"https://{HOST}:{port}" for port in (site.ports.etcd, site.ports.etcd_peers))
    return [
        site.programs["etcd"],
        "--name=bench",
        f"--data-dir={site.state.etcd}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=bench={peers}",
        "--client-cert-auth",
        "--peer-client-cert-auth",
        *site.list_key_options("etcd", "--trusted-ca-file", "--cert-file", "--key-file"),
        *site.list_key_options("etcd", "--peer-trusted-ca-file", "--peer-cert-file", "--peer-key-file"),
    ]


def build_api_server_command(site: Site) -> list[str]:
    """Return the command of the API server with its default limits."""
    accounts = site.state.keys / "accounts.key"
    return [
        site.programs["kube-apiserver"],
        f"--etcd-servers=https://{HOST}:{site.ports.etcd}",
        *site.list_key_options("etcd", "--etcd-cafile", "--etcd-certfile", "--etcd-keyfile"),
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        # The Service of the API server must not have a loopback address as its endpoint.
        "--endpoint-reconciler-type=none",
        f"--secure-port={site.ports.api}",
        *site.list_key_options("kube-apiserver", "--client-ca-file", "--tls-cert-file", "--tls-private-key-file"),
        "--authorization-mode=RBAC",
        # A new node would get a taint that only the node lifecycle controller removes.
        "--disable-admission-plugins=TaintNodesByCondition",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={accounts}",
        f"--service-account-signing-key-file={accounts}",
    ]


def build_controller_manager_command(site: Site, qps: int, burst: int) -> list[str]:
    """Return the command of the controllers, with their limit of requests per second."""
    keys = site.state.keys
    return [
        site.programs["kube-controller-manager"],
        f"--kubeconfig={keys / 'kube-controller-manager.kubeconfig'}",
        f"--bind-address={HOST}",
        f"--secure-port={site.ports.controller_manager}",
        CONTROLLERS,
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={keys / 'accounts.key'}",
        f"--root-ca-file={keys / 'authority.crt'}",
        f"--kube-api-qps={qps}",
        f"--kube-api-burst={burst}",
    ]


def build_scheduler_command(site: Site) -> list[str]:
    """Return the command of the scheduler."""
    return [
        site.programs["kube-scheduler"],
        f"--kubeconfig={site.state.keys / 'kube-scheduler.kubeconfig'}",
        f"--bind-address={HOST}",
        f"--secure-port={site.ports.scheduler}",
        "--leader-elect=false",
        f"--kube-api-qps={SCHEDULER_QPS}",
        f"--kube-api-burst={2 * SCHEDULER_QPS}",
    ]


def build_kwok_command(site: Site) -> list[str]:
    """Return the command of kwok, which simulates the kubelets."""
    return [
        site.programs["kwok"],
        f"--kubeconfig={site.state.kubeconfig}",
        f"--config={site.state.folder / 'stages.json'}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=0",
        # All nodes share one range. The default range has 254 addresses, and a pod without an address never runs.
        "--cidr=10.128.0.0/12",
        f"--server-address={HOST}:{site.ports.kwok}",
    ]
