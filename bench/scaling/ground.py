"""A control plane with simulated nodes on loopback, in a temporary folder, which ends with the benchmark."""

import datetime as dt
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster import places, programs, waiting
from cluster.components import Component
from cluster.places import State
from cluster.programs import Programs
from scaling import components, nodes
from scaling.components import Ports, Site

END_SECONDS = 30


@dataclass(frozen=True)
class Ground:
    """The running control plane, without a controller manager. `pids` are its processes by name."""

    site: Site
    pids: dict[str, int]


@contextmanager
def running(site: Site, name: str, command: Sequence[str]) -> Iterator[Component]:
    """Run a process, which the kernel kills if this one dies."""
    site.state.logs.mkdir(exist_ok=True)
    log = site.state.logs / f"{name}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=site.state.folder,
        )
    try:
        yield Component(name, process, log)
    finally:
        process.kill()
        process.wait(END_SECONDS)


@contextmanager
def start() -> Iterator[Ground]:
    """Yield a control plane without a controller manager."""
    with places.alone_in_cache():
        built = programs.build()
        kwok = programs.provide(programs.KWOK)
    with tempfile.TemporaryDirectory(prefix="muster-scale-") as folder:
        site = Site(Programs({**built.paths, **kwok}), State(Path(folder)), Ports())
        components.write_keys(site, dt.datetime.now(dt.UTC))
        (site.state.folder / "stages.json").write_text(nodes.stages(), encoding="utf-8")
        with (
            running(site, "etcd", components.etcd(site)) as etcd,
            running(site, "kube-apiserver", components.api_server(site)) as api_server,
        ):
            authority = site.state.keys / "authority.crt"
            waiting.until(waiting.serves(f"{site.api}/readyz", authority), api_server, "the API server")
            with (
                running(site, "kube-scheduler", components.scheduler(site)) as scheduler,
                running(site, "kwok", components.kwok(site)) as kwok_process,
            ):
                parts = (etcd, api_server, scheduler, kwok_process)
                yield Ground(site, {part.name: part.process.pid for part in parts})


@contextmanager
def controllers(ground: Ground, qps: int, burst: int) -> Iterator[Component]:
    """Run a controller manager with these limits."""
    command = components.controller_manager(ground.site, qps, burst)
    with running(ground.site, "kube-controller-manager", command) as component:
        yield component
