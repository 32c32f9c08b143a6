"""The programs of a Kubernetes, built from their Go modules: it downloads only sources with checksums."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from cluster.places import BINARIES, alone_in_cache, cache, used
from cluster.say import CannotGoOn, say

# 1.34 is the last whose kubelet runs on cgroup v1 without a further setting.
KUBERNETES = "v1.34.4"
STAMP = "k8s.io/component-base/version"


# Compilers and linkers collect garbage only if they need more than this memory, which few do.
MEMORY = {"GOGC": "off", "GOMEMLIMIT": "3GiB"}
# Without this setting the API server reports version v0.0.0, and clients and charts use it.
LINKING = f"-s -w -X {STAMP}.gitVersion={KUBERNETES} -X {STAMP}.gitMajor=1 -X {STAMP}.gitMinor=34"


@dataclass(frozen=True)
class Module:
    """Programs, as names and their packages, that are built together.

    `folder` is a folder of `binaries`, whose go.mod pins all versions; the default is the name.
    """

    name: str
    programs: tuple[tuple[str, str], ...]
    linking: str = "-s -w"
    folder: str = ""

    @property
    def sources(self) -> Path:
        """The folder of the go.mod."""
        return BINARIES / (self.folder or self.name)


# Only tests with Docker need this program.
KIND = Module("kind", (("kind", "sigs.k8s.io/kind"),))
# Only bench/scale.py needs this program: it simulates nodes.
KWOK = Module("kwok", (("kwok", "sigs.k8s.io/kwok/cmd/kwok"),))
# Only the test of the page about GitOps needs this program: it computes health as Flux and Argo CD do.
GITOPS = Module("gitops", (("gitops", "."),))
# Only the tests of the queues need these programs (queues/source.py).
KUEUE = Module("kueue", (("kueue", "sigs.k8s.io/kueue/cmd/kueue"),))
SCHEDULER_PLUGINS = Module(
    "scheduler-plugins",
    (
        ("gang-scheduler", "sigs.k8s.io/scheduler-plugins/cmd/scheduler"),
        ("pod-group-controller", "sigs.k8s.io/scheduler-plugins/cmd/controller"),
    ),
)
# Both have one go.mod, so the packages that programs share have one version, and Go compiles them once. The clients
# are built separately, because the tests on other clusters need only them.
MODULES = (
    Module(
        "kubernetes",
        (
            ("pause", "./pause"),
            ("coredns", "./coredns"),
            ("etcd", "go.etcd.io/etcd/server/v3"),
            *(
                (name, f"k8s.io/kubernetes/cmd/{name}")
                for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
            ),
        ),
        LINKING,
    ),
    Module(
        "clients",
        (("kubectl", "k8s.io/kubernetes/cmd/kubectl"), ("helm", "helm.sh/helm/v3/cmd/helm")),
        LINKING,
        "kubernetes",
    ),
)


@dataclass(frozen=True)
class Programs:
    """The path of each program, by its name."""

    paths: dict[str, Path]

    def __getitem__(self, name: str) -> str:
        return str(self.paths[name])


def build() -> Programs:
    """Build the programs that aren't in the cache. Raises CannotGoOn if Go is missing or a build fails."""
    paths: dict[str, Path] = {}
    for module in MODULES:
        paths |= provide(module)
    return Programs(paths)


def provide(module: Module) -> dict[str, Path]:
    """Return a module's programs; build them if they aren't in the cache."""
    folder = place(module)
    if not folder.is_dir():
        make(module, folder)
    used(folder.parent)
    return {name: folder / name for name, _ in module.programs}


def find(name: str) -> Path:
    """Return one program: from the cache, else the machine's own, else built."""
    [module] = [module for module in (*MODULES, KIND, KWOK, GITOPS) if name in dict(module.programs)]
    machines = shutil.which(name)
    if machines and not place(module).is_dir():
        return Path(machines)
    with alone_in_cache():
        return provide(module)[name]


def place(module: Module) -> Path:
    """Return the folder of a module's built programs."""
    return cache() / f"{module.name}-{fingerprint(module)}" / "bin"


def fingerprint(module: Module) -> str:
    """Return a hash of every file of the module and of the build's settings."""
    digest = hashlib.sha256(repr(module).encode())
    for file in sorted(file for file in module.sources.rglob("*") if file.is_file()):
        digest.update(str(file.relative_to(module.sources)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def make(module: Module, folder: Path) -> None:
    """Build all programs of a module beside `folder` and rename it, so that an interrupted build has no effect."""
    names = [name for name, _ in module.programs]
    say(f"building {', '.join(names)} (kept in {folder})")
    begun = time.monotonic()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        for group in groups(module):
            compile_programs(module, group, Path(scratch))
        # mkdtemp creates a private folder, but containers and other users have to run the programs.
        built = Path(scratch) / "bin"
        built.mkdir()
        for name in names:
            (Path(scratch) / name).rename(built / name)
        built.rename(folder)
    say(f"built {', '.join(names)} in {time.monotonic() - begun:.0f} s")


def groups(module: Module) -> list[tuple[tuple[str, str], ...]]:
    """Programs for one `go build`: those whose package has the program's name."""
    together = tuple((name, package) for name, package in module.programs if package.endswith(f"/{name}"))
    alone = [((name, package),) for name, package in module.programs if not package.endswith(f"/{name}")]
    return ([together] if together else []) + alone


def compile_programs(module: Module, group: tuple[tuple[str, str], ...], folder: Path) -> None:
    """Run one `go build`."""
    go = shutil.which("go")
    if go is None:
        raise CannotGoOn("Go is missing: install Go 1.24 or newer (https://go.dev/dl) and put it on the PATH.")
    target = f"{folder}/" if len(group) > 1 or group[0][1].endswith(f"/{group[0][0]}") else f"{folder / group[0][0]}"
    command = [go, "build", "-trimpath", "-ldflags", module.linking, "-o", target, *(package for _, package in group)]
    # The user's settings for their own modules (vendoring, workspaces) don't apply.
    own = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
    environment = os.environ | MEMORY | own
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=module.sources, env=environment)
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise CannotGoOn(f"`go build` of {module.name} failed; the module cache or the network may be missing:\n{last}")
