"""Lists everything that a cluster could leave on a machine. Tests compare the lists before a start and after the
end."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from cluster import cgroups, components, packages, places

FOLDERS = ("/etc/cni", "/opt/cni", "/run", "/run/netns", "/run/containerd", "/var/lib", "/var/log")


def traces() -> frozenset[str]:
    """One line for each trace; two results are equal if nothing remained between them."""
    return frozenset([*interfaces(), *mounts(), *processes(), *groups(), *rules(), *folders()])


def interfaces() -> Iterator[str]:
    """Network interfaces and routes."""
    for what in ("link", "route", "netns"):
        listed = subprocess.run(["ip", "-o", what], check=True, capture_output=True, text=True).stdout
        for line in listed.splitlines():
            # The rest of a link's line has counters of other traffic.
            yield f"{what} {' '.join(line.split()[:2] if what == 'link' else line.split())}"


def mounts() -> Iterator[str]:
    """Mounts that this process sees."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        yield f"mount {line.split()[4]}"


def processes() -> Iterator[str]:
    """Yield the cluster's processes, by their mark or by their program."""
    marked = {found.pid for found in components.marked()}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            program = (process / "exe").readlink()
        except OSError:
            # It has exited, or is a kernel thread.
            continue
        if int(process.name) in marked or program.is_relative_to(places.cache()):
            yield f"process {process.name} {program}"


def groups() -> Iterator[str]:
    """Groups that a kubelet or containerd creates."""
    for root in cgroups.hierarchies():
        for name in (cgroups.BRANCH, "k8s.io", "kubepods", "default"):
            if (root / name).exists():
                yield f"cgroup {root / name}"


def rules() -> Iterator[str]:
    """Yield the rules of the machine's packet filter."""
    tools = packages.provide()
    for command in ("iptables-save", "ip6tables-save"):
        listed = subprocess.run(
            [tools.find(command)], check=False, capture_output=True, text=True, env=dict(tools.environment)
        ).stdout
        for line in listed.splitlines():
            # Leave out comments, which contain the time, and the counters of chains.
            if not line.startswith(("#", ":")):
                yield f"rule {line}"


def folders() -> Iterator[str]:
    """Entries of folders that such programs write to, and the cluster's own."""
    for folder in (*map(Path, FOLDERS), places.state().folder):
        if folder.is_dir():
            for entry in folder.iterdir():
                yield f"file {entry}"
