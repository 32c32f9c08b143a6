"""Makes the Python that the agent brings along into images without one: `own_python.py FOLDER`.

What is made runs at `PLACE` and nowhere else, in any image of this machine's architecture: it has its own loader and C
library, and asks the image for none. It holds what the agent imports, and no more. Made with the Python that runs this,
while the operator's image is built; needs `patchelf` on the PATH.
"""

from __future__ import annotations

import importlib.machinery
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from modulefinder import ModuleFinder
from pathlib import Path

PLACE = "/muster-python"
"""Where it lies in the operator's image, and where pods mount it. Written into the program: a loader has one path."""

AGENT = Path(__file__).resolve().parents[2] / "training"
COPIER = Path(__file__).resolve().with_name("own_python_copier.py")

_BY_NAME = (
    # started by the interpreter itself, or by what is written in C
    *("encodings.aliases", "encodings.ascii", "encodings.idna", "encodings.latin_1", "encodings.utf_8"),
    *("linecache", "runpy", "site", "traceback", "warnings"),
)
"""What is looked for by its name while the agent runs, so that no import statement tells of it."""

_FOR_PEOPLE = (
    "doctest",
    "pdb",
    "pydoc",
    "readline",
    "statistics",
    "test",
    "tkinter",
    "unittest",
    "sysconfig",
    "sitecustomize",
    "usercustomize",
)
"""What modules import when they are started by hand, and what others may have put beside the standard library."""

_STATIC_NAMES = (2, 34)
"""The release of glibc from which on it finds hosts without modules of its own in other files (its NEWS)."""

_HEEDS_LD = (
    # glibc's _dl_next_ld_env_entry looks for "LD_", letter by letter; no variable begins with the character put for L.
    # x86-64: cmpb $'L', (r); jne; cmpb $'D', 1(r); jne; cmpb $'_', 2(r); jne
    (rb"(\x80[\x38-\x3f])L(\x75.\x80[\x78-\x7f]\x01D\x75.\x80[\x78-\x7f]\x02_\x75)", b"\\1\x01\\2"),
    # aarch64: cmp w, #'L'; b.ne; ldrb; cmp w, #'D'; b.ne; ldrb; cmp w, #'_'
    (rb"(.)\x30\x01(\x71.{8}.\x10\x01\x71.{8}.\x7c\x01\x71)", b"\\1\x04\x00\\2"),
)
"""In a loader's instructions: where it sees whether a variable is for it, and what makes it see none."""

_LIBRARY = re.compile(r"^\s*(\S+) => (/\S+) ", re.MULTILINE)
_ABSENT = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)


class CannotMake(Exception):
    """This Python can't be made into one for other images; the message says why."""


def main(arguments: Sequence[str]) -> int:
    """Make it in the folder that is named."""
    [folder] = arguments
    target = Path(folder)
    make(target)
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    print(f"{target}: {size / 1e6:.1f} MB, for {PLACE}", flush=True)
    return 0


def make(target: Path) -> None:
    """Fill the folder `target`, which is new. Raises `CannotMake`."""
    check_c_library()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    modules = target / "lib" / version
    extensions = modules / "lib-dynload"
    for folder in (target / "bin", extensions):
        folder.mkdir(parents=True)
    program = target / "bin" / "python3"
    shutil.copy(os.path.realpath(base_executable()), program)
    built = [*place_modules(needed(), modules, extensions), program]
    loader = asked(program, "--print-interpreter")
    place_libraries(loader, built, target / "lib")
    own_loader = Path(shutil.copy(loader, target / "lib"))
    settle(program, own_loader.name)
    deafen(own_loader, program)
    shutil.copy(COPIER, target / "copy.py")


def check_c_library() -> None:
    """Raises `CannotMake` unless the C library is one that stands alone."""
    name, _, release = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    result = tuple(int(part) for part in release.split(".") if part.isdecimal())
    if name != "glibc" or result < _STATIC_NAMES:
        raise CannotMake(f"expected a Python on glibc 2.34 or newer; found {name or 'another library'} {release}")


def base_executable() -> str:
    """The interpreter that a virtual environment stands on."""
    return getattr(sys, "_base_executable", None) or sys.executable


def needed() -> Mapping[str, Path]:
    """What the agent imports of the standard library, and what that imports, each with its file."""
    stdlib = sysconfig.get_path("stdlib")
    # what others install lies beside the standard library or below it, and is none of it
    path = [str(AGENT), stdlib, sysconfig.get_config_var("DESTSHARED")]
    finder = ModuleFinder(path=path, excludes=_FOR_PEOPLE)
    finder.run_script(str(COPIER))
    for name in (*agent_modules(), *_BY_NAME):
        finder.import_hook(name)
    files = {name: getattr(module, "__file__", None) for name, module in finder.modules.items()}
    return {name: Path(file) for name, file in files.items() if file and not is_brought(name)}


def agent_modules() -> Iterator[str]:
    """The agent's own modules by their names; what sits in a folder without `__init__` is for the ranks' Python."""
    for file in sorted((AGENT / "muster_worker").rglob("*.py")):
        if file.with_name("__init__.py").exists():
            yield ".".join(file.relative_to(AGENT).with_suffix("").parts).removesuffix(".__init__")


def is_brought(name: str) -> bool:
    """Whether a module comes another way: in the agent's archive, or as the program that copies."""
    return name.partition(".")[0] in ("muster_worker", "__main__")


def place_modules(result: Mapping[str, Path], modules: Path, extensions: Path) -> list[Path]:
    """Put modules where an interpreter looks for them, compiled; the libraries among them."""
    libraries = []
    for name, file in sorted(result.items()):
        if file.suffix == ".py":
            inside = Path(*name.split("."))
            compiled = modules / (inside / "__init__.pyc" if file.stem == "__init__" else inside.with_suffix(".pyc"))
            # nobody can write there later, and a layer's times aren't the files'
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(file), str(compiled), f"<{name}>", doraise=True, invalidation_mode=mode)
        elif file.name.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
            libraries.append(Path(shutil.copy(file, extensions)))
    return libraries


def place_libraries(loader: str, programs: Sequence[Path], folder: Path) -> None:
    """Put the shared libraries of programs into `folder`. Raises `CannotMake` when one isn't there."""
    result: dict[str, str] = {}
    for program in programs:
        listed = output([loader, "--list", str(program)])
        absent = _ABSENT.search(listed)
        if absent is not None:
            raise CannotMake(f"{program.name} needs {absent.group(1)}, which isn't on this machine")
        result.update(_LIBRARY.findall(listed))
    # opened by its name when a thread ends
    result["libgcc_s.so.1"] = str(Path(result["libc.so.6"]).with_name("libgcc_s.so.1"))
    for name, file in result.items():
        shutil.copy(file, folder / name)


def settle(program: Path, loader: str) -> None:
    """Let a program use its own loader and libraries, whatever the image's environment says."""
    library = f"{PLACE}/lib"
    # DT_RPATH and not DT_RUNPATH: it counts before LD_LIBRARY_PATH, and for the libraries' own libraries
    change(program, "--set-interpreter", f"{library}/{loader}", "--force-rpath", "--set-rpath", library)
    for file in (program.parents[1] / "lib").rglob("*.so*"):
        if asked(file, "--print-rpath"):
            change(file, "--remove-rpath")


def deafen(loader: Path, program: Path) -> None:
    """Let a loader read none of the variables that begin with LD_. Raises `CannotMake` when it still does.

    What an image preloads is made for its own C library and kills a program on another one. The variables stay: the
    ranks, which have the image's loader, are started with them.
    """
    code = loader.read_bytes()
    for pattern, instead in _HEEDS_LD:
        code = re.sub(pattern, instead, code, flags=re.DOTALL)
    loader.write_bytes(code)
    command = [str(loader), "--library-path", str(loader.parent), str(program), "--version"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={"LD_PRELOAD": "/none"})
    if done.returncode != 0 or done.stderr:
        raise CannotMake(f"{loader.name} can't be told to ignore LD_PRELOAD: {done.stderr.strip()}")


def asked(file: Path, option: str) -> str:
    """What patchelf knows about a file."""
    return output(["patchelf", option, str(file)]).strip()


def change(file: Path, *options: str) -> None:
    """Let patchelf change a file."""
    output(["patchelf", *options, str(file)])


def output(command: Sequence[str]) -> str:
    """What a command prints. Raises `CannotMake` with what it says when it fails."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotMake(f"`{' '.join(command)}` failed: {(done.stdout + done.stderr).strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
