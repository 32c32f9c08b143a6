"""The environment of a Dockerfile's steps: a root of stacked layers in its own namespaces, removed when the
step ends.
"""

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.dockerfile import Run
from cluster.images import PATH
from cluster.packages import Tools
from cluster.say import CannotGoOn

LAST_LINES = 25
# The machine's settings for network and package index: the steps get them, and the image does not contain them.
FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")


def run(
    tools: Tools, lower: Sequence[Path], scratch: Path, step: Run, environment: Mapping[str, str], layer: Path
) -> None:
    """Run a step over `lower` with the files of `scratch`/context; its changes become the folder `layer`."""
    script = [
        *stacked(lower, scratch),
        # Set the owner to root, because an image's files belong to root.
        "cp -dR --preserve=mode context/. room/root/",
        *(f"mkdir -p room/root{folder}" for folder in (shlex.quote(step.folder), "/dev", "/proc")),
        "mount -t proc proc room/root/proc",
        "mount --rbind /dev room/root/dev",
        *lent(),
        f"chroot room/root /bin/sh -c {shlex.quote(f'cd {shlex.quote(step.folder)} && {step.command}')} </dev/null",
        # The layer's own file system is unmounted at the end.
        "cp -a room/upper layer",
    ]
    execute(tools, script, scratch, machine_settings() | own_settings() | dict(environment))
    (scratch / "layer").rename(layer)


def pack(tools: Tools, lower: Sequence[Path], source: str, target: str, layer: Path) -> None:
    """Write the folder `source` of stacked layers as a tar with the path `target`."""
    scratch = layer.with_suffix(".making")
    scratch.mkdir()
    try:
        # The same files give the same bytes: nodes identify a layer by its digest.
        options = "--sort=name --mtime=@0 --numeric-owner --owner=0 --group=0"
        rename = shlex.quote(f"s,^\\.,{target.strip('/')},")
        script = [
            *stacked(lower, scratch),
            f"tar {options} --transform {rename} -C {shlex.quote(f'room/root{source}')} -cf layer.tar .",
        ]
        execute(tools, script, scratch, {"PATH": os.environ["PATH"]})
        (scratch / "layer.tar").rename(layer)
    finally:
        subprocess.run(["rm", "-rf", str(scratch)], check=True)


def stacked(lower: Sequence[Path], scratch: Path) -> list[str]:
    """Return the commands that mount room/root. Changes are in memory, because not every disk can be an overlay's upper
    layer.
    """
    below = ":".join(shlex.quote(str(layer)) for layer in reversed(lower))
    return [
        "set -e",
        f"cd {shlex.quote(str(scratch))}",
        "mkdir room",
        "mount -t tmpfs -o mode=755 tmpfs room",
        "mkdir room/upper room/work room/root",
        f"mount -t overlay overlay -o lowerdir={below},upperdir=room/upper,workdir=room/work room/root",
    ]


def lent() -> list[str]:
    """Return the commands that mount the machine's files for the step, read-only."""
    commands = []
    for name in (*FILES, *named_by_settings()):
        if not Path(name).exists():
            continue
        inside = f"room/root{shlex.quote(name)}"
        make = "mkdir -p" if Path(name).is_dir() else "touch"
        commands += [
            f"mkdir -p {shlex.quote(f'room/root{Path(name).parent}')}",
            f"[ -e {inside} ] || {make} {inside}",
            f"mount --bind {shlex.quote(name)} {inside}",
            f"mount -o remount,bind,ro {inside}",
        ]
    return commands


def machine_settings() -> dict[str, str]:
    """Return the machine's variables for proxies, certificates and the package index, and no others."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or of_the_network(name)}
    file = user_file()
    return kept | ({"PIP_CONFIG_FILE": str(file)} if file else {})


def of_the_network(name: str) -> bool:
    """Whether a variable is a setting of the network."""
    return name in {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"} or name.lower().endswith("_proxy")


def own_settings() -> dict[str, str]:
    """Variables that a step has on every machine."""
    name, path = PATH.split("=", 1)
    pip = {"PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    return {name: path, "HOME": "/root", **pip}


def named_by_settings() -> list[str]:
    """Return the files and folders of the machine that its settings name."""
    return [value for value in machine_settings().values() if value.startswith("/")]


def user_file() -> Path | None:
    """Return the user's pip.conf, if it exists."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    places = (os.environ.get("PIP_CONFIG_FILE", ""), folder / "pip" / "pip.conf", Path("~/.pip/pip.conf").expanduser())
    return next((Path(place) for place in places if place and Path(place).is_file()), None)


def execute(tools: Tools, script: Sequence[str], scratch: Path, environment: Mapping[str, str]) -> None:
    """Run a script in its own namespaces. Raises CannotGoOn with its last lines."""
    inside = [tools.find("unshare"), "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
    done = subprocess.run(
        [*inside, "sh", "-c", "\n".join(script)],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=scratch,
        env=dict(environment),
    )
    if done.returncode != 0:
        last = "\n".join(done.stdout.strip().splitlines()[-LAST_LINES:])
        raise CannotGoOn(f"a step of the Dockerfile failed with exit code {done.returncode}:\n{last}")
