"""Programs from Debian: containerd, runc, CNI plug-ins, iptables, debootstrap.

They are unpacked into the cache, not installed on the machine. Without apt-get, the machine's own are used.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster.places import cache, used
from cluster.say import CannotGoOn, say
from support import debian_packages

PACKAGES = (
    "containerd",
    "runc",
    "containernetworking-plugins",
    "iptables",
    "debootstrap",
    # The libraries of the programs above; many machines have some of them.
    "libip4tc2",
    "libip6tc2",
    "libmnl0",
    "libnetfilter-conntrack3",
    "libnfnetlink0",
    "libnftnl11",
    "libseccomp2",
    "libxtables12",
)
# Every Debian has these; without them, further error messages are useless.
MACHINE = ("ip", "mount", "nsenter", "unshare")
NEEDED = ("containerd", "containerd-shim-runc-v2", "ctr", "runc", "iptables")
CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
CNI_PLUGINS = ("bridge", "host-local", "loopback", "portmap")


@dataclass(frozen=True)
class Tools:
    """How to run the packages' programs: `environment` has their paths, `cni` is the folder of the CNI plug-ins."""

    environment: Mapping[str, str]
    cni: Path

    def find(self, name: str) -> str:
        """Return the path of a program. Raises CannotGoOn if there is none."""
        path = shutil.which(name, path=self.environment["PATH"])
        if path is None:
            raise CannotGoOn(f"{name} is missing: install it, or use a machine with apt-get, which fetches it.")
        return path


def provide() -> Tools:
    """Return the tools from the cache; download missing ones. Raises CannotGoOn with all that is missing."""
    if debian_packages.can_unpack():
        tools = unpacked(fetch())
    else:
        folder = next((folder for folder in CNI_FOLDERS if folder.is_dir()), CNI_FOLDERS[0])
        tools = Tools({"PATH": search_path()}, folder)
    missing = [name for name in (*MACHINE, *NEEDED) if shutil.which(name, path=tools.environment["PATH"]) is None]
    missing += [f"{name} (a CNI plug-in)" for name in CNI_PLUGINS if not (tools.cni / name).exists()]
    if missing:
        raise CannotGoOn(
            f"missing on this machine: {', '.join(missing)}. On Debian or Ubuntu they come of themselves, where "
            "apt-get can download; else install containerd, runc, the CNI plug-ins, iptables, iproute2, util-linux."
        )
    return tools


def search_path(*first: Path) -> str:
    """Return a PATH with the administrator's programs."""
    rest = [os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"]
    return ":".join([*map(str, first), *filter(None, rest)])


def unpacked(root: Path) -> Tools:
    """Return the tools of an unpacked tree."""
    libraries = sorted({str(file.parent) for file in root.glob("**/*.so.*")})
    extensions = next(iter(root.glob("usr/lib/*/xtables")), root)
    environment = {
        "PATH": search_path(root / "usr/sbin", root / "usr/bin"),
        "LD_LIBRARY_PATH": ":".join(libraries),
        "XTABLES_LIBDIR": str(extensions),
        "DEBOOTSTRAP_DIR": str(root / "usr/share/debootstrap"),
    }
    return Tools(environment, root / "usr/lib/cni")


def fetch() -> Path:
    """Return the tree of unpacked packages; create it if necessary."""
    root = cache() / f"debian-{debian_packages.compute_digest(PACKAGES)}"
    if root.is_dir():
        used(root)
        return root
    say(f"fetching {', '.join(PACKAGES[:5])} (unpacked into {root}; nothing is installed)")
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        tree = Path(scratch) / "tree"
        try:
            debian_packages.unpack(PACKAGES, tree)
        except subprocess.CalledProcessError as problem:
            command = " ".join(problem.cmd[:6])
            raise CannotGoOn(f"`{command} ...` failed; `apt-get update` may help:\n{problem.output}") from problem
        choose_iptables(tree / "usr/sbin")
        # `dpkg -x` gives the tree the date of the newest package, which `prune` would use as its last use.
        used(tree)
        tree.rename(root)
    return root


def choose_iptables(folder: Path) -> None:
    """Create the programs' names: Debian's alternatives system does that only during an installation."""
    # nftables if the kernel has it, as on today's distributions.
    flavour = "nft" if iptables_works(folder / "xtables-nft-multi") else "legacy"
    for name in ("iptables", "ip6tables"):
        for suffix in ("", "-save", "-restore"):
            link = folder / f"{name}{suffix}"
            link.unlink(missing_ok=True)
            link.symlink_to(f"xtables-{flavour}-multi")


def iptables_works(program: Path) -> bool:
    """Whether the kernel supports this flavour's rules, tested in a separate network namespace."""
    environment = os.environ | dict(unpacked(program.parents[2]).environment)
    command = ["unshare", "--net", str(program), "iptables", "-t", "nat", "-N", "MUSTER"]
    return subprocess.run(command, check=False, capture_output=True, env=environment).returncode == 0
