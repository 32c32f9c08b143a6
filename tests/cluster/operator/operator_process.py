"""The operator as a process of this machine, with only the permissions that the chart gives its pods."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cluster import chart, lan
from cluster.helm import CHART, Helm
from cluster.shared import Kubectl, Manifest
from cluster.waiting import PAUSE_SECONDS, serves
from muster.core.shard import Shard
from support.free_port import free_port
from support.muster_process import MusterProcess

READY_SECONDS = 60.0
END_SECONDS = 10.0
SERVICE = "muster-collector"
SERVICE_PORT = 8443
RIGHTS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
"""The kinds of the chart's objects that are used; the Deployment and its own objects aren't."""


@dataclass
class OperatorProcess:
    """One replica. It runs the jobs of `namespace`, which also has its Lease, and of `more`; it logs to `log`.

    `config` is its configuration file, `environment` its additional variables, `storage_image` the image that copies
    jobs' files, `options` its additional options. It runs the jobs of `shard`. Pods find the leader by the Service of
    the namespace, as with the chart. Unless `is_forked`, it is a new Python, whose memory is that of a user's operator.
    """

    kubectl: Kubectl
    kubeconfig: Path
    namespace: str
    log: Path
    more: tuple[str, ...] = ()
    config: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    storage_image: str = ""
    options: tuple[str, ...] = ()
    shard: Shard = field(default_factory=Shard)
    is_forked: bool = True
    collector_port: int = field(default_factory=free_port)
    health_port: int = field(default_factory=free_port)
    metrics_port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> "OperatorProcess":
        """Start the operator, and wait until it is ready."""
        folder = self.log.with_suffix(".tmp")
        folder.mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            words = ["operator", *self._options()]
            # A killed process leaves the files that the Kubernetes client makes of a kubeconfig's certificates.
            more = {"KUBECONFIG": str(self.kubeconfig), "TMPDIR": str(folder), **self.environment}
            if self.is_forked:
                self._process = MusterProcess(words, env={**os.environ, **more}, stdout=log, stderr=log)
            else:
                command = [sys.executable, "-P", "-m", "muster.cli.main", *words]
                self._process = subprocess.Popen(command, env={**os.environ, **more}, stdout=log, stderr=log)
        is_ready = serves(f"http://127.0.0.1:{self.health_port}/readyz")
        deadline = time.monotonic() + READY_SECONDS
        while not is_ready():
            assert self._process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(PAUSE_SECONDS)
        return self

    @property
    def said(self) -> str:
        """Return the operator's log so far."""
        return self.log.read_text(encoding="utf-8")

    @property
    def runs(self) -> bool:
        """Whether the operator was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the operator's two processes: itself, and the one that holds the Lease."""
        assert self._process is not None
        pid = self._process.pid
        beside = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return (pid, *map(int, beside))

    @property
    def leads(self) -> bool:
        """Whether the operator is the leader now."""
        return self.said.rfind(" is the leader, leader term") > self.said.rfind(" is no longer the leader")

    def signal(self, number: signal.Signals) -> int:
        """Send the operator a signal that ends it. Returns its exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(END_SECONDS)

    def pass_on(self, number: int) -> None:
        """Send a signal that doesn't end the operator to it, and to the process that holds the Lease."""
        for each in reversed(self.pids):
            os.kill(each, number)

    def end(self) -> None:
        """Kill the operator if it runs."""
        if self._process is not None and self.runs:
            self._process.kill()
            self._process.wait(END_SECONDS)

    def _options(self) -> tuple[str, ...]:
        return (
            *(f"--namespace={namespace}" for namespace in (self.namespace, *self.more)),
            f"--lease-namespace={self.namespace}",
            f"--collector-port={self.collector_port}",
            f"--collector-url=https://{SERVICE}{self.shard.suffix}.{self.namespace}.svc:{SERVICE_PORT}",
            f"--collector-address={lan.HOST}",
            f"--health-port={self.health_port}",
            f"--metrics-port={self.metrics_port}",
            *(() if self.config is None else (f"--config={self.config}",)),
            f"--storage-image={self.storage_image}",
            f"--shard={self.shard.index}/{self.shard.count}",
            # As in the chart, a process that starts again has the name of the previous one.
            f"--identity={self.namespace}-{self.log.stem}",
            *self.options,
        )


def collector_service(namespace: str, shard: Shard) -> Manifest:
    """Return the Service of a shard's collector; the leader writes its endpoints, as with the chart."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"{SERVICE}{shard.suffix}", "namespace": namespace},
        "spec": {"ports": [{"name": "collector", "port": SERVICE_PORT}]},
    }


def account(
    kubectl: Kubectl,
    helm: Helm,
    namespace: str,
    folder: Path,
    more: tuple[str, ...] = (),
    *,
    taints: tuple[str, ...] = (),
    shards: int = 1,
    queues: tuple[str, ...] = (),
    name: str = "muster",
) -> Path:
    """Return a kubeconfig of the operator's account with the chart's permissions for its namespace and `more`.

    With `taints`, the account may read Kubernetes nodes. It may hold the Leases of `shards`, and create the PodGroups
    of `queues`. `name` muster-board is the account of the board.
    """
    values = folder / "values.json"
    given = {
        "namespaces": [namespace, *more],
        "disruptions": {"taints": taints},
        "shards": shards,
        "queues": dict.fromkeys(queues, True),
        "webhook": {"enabled": True},
        "board": {"enabled": name == "muster-board", "logs": True},
    }
    values.write_text(json.dumps({"image": {"repository": "unused"}, **given}), encoding="utf-8")
    where = (f"--namespace={namespace}", f"--kube-version={read_version(kubectl.kubeconfig)}")
    rendered = helm("template", "muster", str(CHART), *where, f"--values={values}", "--set=userRoles=false")
    rights = [each for each in chart.documents(rendered) if each["kind"] in RIGHTS]
    kubectl.apply(*rights)
    token = kubectl("create", "token", name, f"--namespace={namespace}", "--duration=1h").strip()
    config = json.loads(read_config(kubectl.kubeconfig))
    config["users"] = [{"name": "muster", "user": {"token": token}}]
    config["contexts"][0]["context"] |= {"user": "muster", "namespace": namespace}
    kubeconfig = folder / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(json.dumps(config), encoding="utf-8")
    return kubeconfig


@functools.cache
def read_version(kubeconfig: Path) -> str:
    """Return the version of the API server."""
    return str(json.loads(Kubectl(kubeconfig)("version", "--output=json"))["serverVersion"]["gitVersion"])


@functools.cache
def read_config(kubeconfig: Path) -> str:
    """Return the administrator's kubeconfig with all certificates, as JSON."""
    return Kubectl(kubeconfig)("config", "view", "--raw", "--minify", "--flatten", "--output=json")


@dataclass
class Replicas:
    """Operators of one namespace, and of `more`, with common `config`, `environment` and `storage_image`."""

    kubectl: Kubectl
    kubeconfig: Path
    namespace: str
    folder: Path
    more: tuple[str, ...] = ()
    config: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    storage_image: str = ""
    options: tuple[str, ...] = ()
    is_forked: bool = True
    started: list[OperatorProcess] = field(default_factory=list)

    def start(self, shard: Shard | None = None) -> OperatorProcess:
        """Start another operator, of this shard or without shards."""
        # A test may remove a replica that has ended.
        log = self.folder / f"operator-{len(list(self.folder.glob('operator-*.log')))}.log"
        replica = OperatorProcess(
            *(self.kubectl, self.kubeconfig, self.namespace, log, self.more),
            *(self.config, self.environment, self.storage_image, self.options, shard or Shard()),
            is_forked=self.is_forked,
        )
        self.started.append(replica)
        return replica.start()


@contextlib.contextmanager
def replicas(
    kubectl: Kubectl,
    kubeconfig: Path,
    namespace: str,
    folder: Path,
    more: tuple[str, ...] = (),
    shards: int = 1,
    *,
    is_forked: bool = True,
) -> Iterator[Replicas]:
    """Operators that are stopped at the end."""
    kubectl.apply(*(collector_service(namespace, Shard(index, shards)) for index in range(shards)))
    running = Replicas(kubectl, kubeconfig, namespace, folder, more, is_forked=is_forked)
    try:
        yield running
    finally:
        for replica in running.started:
            replica.end()
