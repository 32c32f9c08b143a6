"""Runs a control plane with simulated nodes on loopback, in a temporary folder, until the benchmark ends."""

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
class ControlPlane:
    """The running control plane, without a controller manager. `pids` are its processes by name."""

    site: Site
    pids: dict[str, int]


@contextmanager
def run_process(site: Site, name: str, command: Sequence[str]) -> Iterator[Component]:
    """Run a process. The kernel kills it if this process dies."""
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
def run_control_plane() -> Iterator[ControlPlane]:
    """Yield a control plane without a controller manager."""
    with places.alone_in_cache():
        kubernetes_programs = programs.build()
        kwok = programs.provide(programs.KWOK)
    with tempfile.TemporaryDirectory(prefix="muster-scale-") as folder:
        site = Site(Programs({**kubernetes_programs.paths, **kwok}), State(Path(folder)), Ports())
        components.write_keys(site, dt.datetime.now(dt.UTC))
        (site.state.folder / "stages.json").write_text(nodes.build_stages(), encoding="utf-8")
        with (
            run_process(site, "etcd", components.build_etcd_command(site)) as etcd,
            run_process(site, "kube-apiserver", components.build_api_server_command(site)) as api_server,
        ):
            authority = site.state.keys / "authority.crt"
            waiting.until(waiting.serves(f"{site.api}/readyz", authority), api_server, "the API server")
            with (
                run_process(site, "kube-scheduler", components.build_scheduler_command(site)) as scheduler,
                run_process(site, "kwok", components.build_kwok_command(site)) as kwok_process,
            ):
                started_components = (etcd, api_server, scheduler, kwok_process)
                yield ControlPlane(site, {component.name: component.process.pid for component in started_components})


@contextmanager
def run_controller_manager(control_plane: ControlPlane, qps: int, burst: int) -> Iterator[Component]:
    """Run a controller manager with these limits."""
    command = components.build_controller_manager_command(control_plane.site, qps, burst)
    with run_process(control_plane.site, "kube-controller-manager", command) as component:
        yield component
