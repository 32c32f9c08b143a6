"""The control plane on the machine itself: etcd, API server, controller manager, scheduler, DNS, as command lines and
files.
"""

from cluster.lan import API, DOMAIN, HOST, SERVICES
from cluster.places import State
from cluster.programs import Programs

ETCD = f"https://{HOST}:2379"
ETCD_PEERS = f"https://{HOST}:2380"

# Log the requests of service accounts, without contents: tests compare them with the operator's permissions. The nodes
# and controllers send ten times as many.
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, userGroups: ["system:serviceaccounts:kube-system"]}
- {level: Metadata, userGroups: ["system:serviceaccounts"]}
"""


def etcd(programs: Programs, state: State) -> list[str]:
    """Return the command of etcd. It doesn't sync its files, because it needn't survive a power failure."""
    keys = state.keys
    return [
        programs["etcd"],
        "--name=cluster",
        f"--data-dir={state.etcd}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={ETCD}",
        f"--advertise-client-urls={ETCD}",
        f"--listen-peer-urls={ETCD_PEERS}",
        f"--initial-advertise-peer-urls={ETCD_PEERS}",
        f"--initial-cluster=cluster={ETCD_PEERS}",
        # It listens where pods can reach it, and refuses clients without our certificate.
        *(
            f"--{peer}{option}"
            for peer in ("", "peer-")
            for option in (
                "client-cert-auth",
                f"trusted-ca-file={keys / 'authority.crt'}",
                f"cert-file={keys / 'etcd.crt'}",
                f"key-file={keys / 'etcd.key'}",
            )
        ),
    ]


def api_server(programs: Programs, state: State) -> list[str]:
    """Return the command of the API server."""
    keys = state.keys
    return [
        programs["kube-apiserver"],
        f"--etcd-servers={ETCD}",
        f"--etcd-cafile={keys / 'authority.crt'}",
        f"--etcd-certfile={keys / 'etcd.crt'}",
        f"--etcd-keyfile={keys / 'etcd.key'}",
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        "--secure-port=6443",
        f"--tls-cert-file={keys / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={keys / 'kube-apiserver.key'}",
        f"--client-ca-file={keys / 'authority.crt'}",
        f"--kubelet-client-certificate={keys / 'kubelet-client.crt'}",
        f"--kubelet-client-key={keys / 'kubelet-client.key'}",
        # Nodes' names don't resolve: `kubectl logs` uses addresses.
        "--kubelet-preferred-address-types=InternalIP",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={SERVICES}",
        # There is no kube-proxy beside the API server, so it connects to a webhook's pods directly.
        "--enable-aggregator-routing=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys / 'accounts.key'}",
        f"--service-account-signing-key-file={keys / 'accounts.key'}",
        f"--audit-policy-file={state.folder / 'audit-policy.yaml'}",
        f"--audit-log-path={state.logs / 'audit.log'}",
    ]


def controller_manager(programs: Programs, state: State) -> list[str]:
    """Return the command of the controllers. Nodes configure their pods' address ranges themselves."""
    keys = state.keys
    return [
        programs["kube-controller-manager"],
        f"--kubeconfig={keys / 'kube-controller-manager.kubeconfig'}",
        f"--bind-address={HOST}",
        "--controllers=*,-nodeipam",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={keys / 'accounts.key'}",
        f"--root-ca-file={keys / 'authority.crt'}",
        f"--cluster-signing-cert-file={keys / 'authority.crt'}",
        f"--cluster-signing-key-file={keys / 'authority.key'}",
    ]


def scheduler(programs: Programs, state: State) -> list[str]:
    """Return the command of the scheduler."""
    return [
        programs["kube-scheduler"],
        f"--kubeconfig={state.keys / 'kube-scheduler.kubeconfig'}",
        f"--bind-address={HOST}",
        "--leader-elect=false",
    ]


def dns(programs: Programs, state: State) -> list[str]:
    """Return the command of CoreDNS."""
    return [programs["coredns"], "-conf", str(state.folder / "Corefile")]


def corefile(state: State, denial_seconds: int) -> str:
    """Return CoreDNS' configuration, which has only the cluster's names.

    It caches missing names for `denial_seconds`.
    """
    return f"""\
.:53 {{
    bind {HOST}
    errors
    ready {HOST}:8181
    cache 30 {{
        denial 9984 {denial_seconds}
    }}
    kubernetes {DOMAIN} in-addr.arpa {{
        kubeconfig {state.kubeconfig} muster-cluster
    }}
}}
"""


def ready_url() -> str:
    """Return a URL that answers 200 when the API server serves."""
    return f"{API}/readyz"
