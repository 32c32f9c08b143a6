"""Builds the Python that the agent uses in images without one: `own_python.py FOLDER`.

The result runs only at `INSTALL_PATH`. It runs in any image of this machine's architecture, because it has its own
loader and C library. It contains only the modules that the agent imports. The build of the operator's image runs this
program with the Python to copy, and with `patchelf` on PATH.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
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

INSTALL_PATH = "/muster-python"
"""The path of the result in the operator's image and in pods. An executable contains the fixed path of its loader."""

AGENT = Path(__file__).resolve().parents[2] / "training"
COPIER = Path(__file__).resolve().with_name("own_python_copier.py")

_IMPORTED_BY_NAME = (
    # imported by the interpreter itself or by C code
    *("encodings.aliases", "encodings.ascii", "encodings.idna", "encodings.latin_1", "encodings.utf_8"),
    "encodings.cp437",  # zipfile decodes the names in an archive with it
    *("linecache", "runpy", "site", "traceback", "warnings"),
)
"""Modules that are imported by name at run time, without an import statement."""

_EXCLUDED = (
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
"""Modules that are imported only by scripts, or that may be installed in addition to the standard library."""

_MIN_GLIBC = (2, 34)
"""The first release of glibc that resolves hosts without additional libraries (glibc's NEWS)."""

_LD_PATTERNS = (
    # glibc's _dl_next_ld_env_entry compares "LD_" letter by letter. The patch replaces L by a character that starts no
    # variable's name. x86-64: cmpb $'L', (r); jne; cmpb $'D', 1(r); jne; cmpb $'_', 2(r); jne
    (rb"(\x80[\x38-\x3f])L(\x75.\x80[\x78-\x7f]\x01D\x75.\x80[\x78-\x7f]\x02_\x75)", b"\\1\x01\\2"),
    # aarch64: cmp w, #'L'; b.ne; ldrb; cmp w, #'D'; b.ne; ldrb; cmp w, #'_'
    (rb"(.)\x30\x01(\x71.{8}.\x10\x01\x71.{8}.\x7c\x01\x71)", b"\\1\x04\x00\\2"),
)
"""Patterns in a loader's machine code that recognize LD_ variables, and replacements that recognize none."""

_LIBRARY = re.compile(r"^\s*(\S+) => (/\S+) ", re.MULTILINE)
_ABSENT = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)


class BuildError(Exception):
    """This Python can't be copied for other images. The message has the reason."""


def main(arguments: Sequence[str]) -> int:
    """Build the Python in the folder of the argument."""
    [folder] = arguments
    target = Path(folder)
    build_python(target)
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    print(f"{target}: {size / 1e6:.1f} MB, for {INSTALL_PATH}", flush=True)
    return 0


def build_python(target: Path) -> None:
    """Fill the new folder `target`. Raises `BuildError`."""
    check_c_library()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    modules = target / "lib" / version
    extensions = modules / "lib-dynload"
    for folder in (target / "bin", extensions):
        folder.mkdir(parents=True)
    program = target / "bin" / "python3"
    shutil.copy(os.path.realpath(find_base_executable()), program)
    built = [*copy_modules(find_modules(), modules, extensions), program]
    loader = query_property(program, "--print-interpreter")
    copy_libraries(loader, built, target / "lib")
    own_loader = Path(shutil.copy(loader, target / "lib"))
    set_library_paths(program, own_loader.name)
    disable_ld_variables(own_loader, program)
    shutil.copy(COPIER, target / "copy.py")


def check_c_library() -> None:
    """Raise `BuildError` unless the C library is a suitable glibc."""
    name, _, release = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    result = tuple(int(part) for part in release.split(".") if part.isdecimal())
    if name != "glibc" or result < _MIN_GLIBC:
        raise BuildError(f"expected a Python on glibc 2.34 or newer; found {name or 'another library'} {release}")


def find_base_executable() -> str:
    """Return the interpreter on which a virtual environment is based."""
    return getattr(sys, "_base_executable", None) or sys.executable


def find_modules() -> Mapping[str, Path]:
    """Find all modules of the standard library that the agent imports, directly or indirectly, with their files."""
    stdlib = sysconfig.get_path("stdlib")
    # Search only the standard library, not installed packages.
    path = [str(AGENT), stdlib, *find_extension_folders()]
    finder = ModuleFinder(path=path, excludes=_EXCLUDED)
    finder.run_script(str(COPIER))
    for name in (*list_agent_modules(), *_IMPORTED_BY_NAME):
        finder.import_hook(name)
    files = {name: getattr(module, "__file__", None) for name, module in finder.modules.items()}
    return {name: Path(file) for name, file in files.items() if file and not is_excluded(name)}


def find_extension_folders() -> list[str]:
    """Return the folders of the standard library's extension modules.

    `sysconfig` names the folder of the build, which does not exist if this Python was moved later. Raises `BuildError`
    if this Python has no `ctypes`, without which the agent does not run.
    """
    found = importlib.util.find_spec("_ctypes")
    if found is None:
        raise BuildError(
            f"expected a Python with the module ctypes; {sys.executable} has no _ctypes in {', '.join(sys.path)} "
            f"(its sysconfig names {sysconfig.get_config_var('DESTSHARED')})"
        )
    # A Python with built-in extension modules has no folder for them.
    return [str(Path(found.origin).parent)] if found.has_location and found.origin else []


def list_agent_modules() -> Iterator[str]:
    """Yield the names of the agent's modules. A folder without `__init__` runs on the ranks' Python."""
    for file in sorted((AGENT / "muster_worker").rglob("*.py")):
        if file.with_name("__init__.py").exists():
            yield ".".join(file.relative_to(AGENT).with_suffix("").parts).removesuffix(".__init__")


def is_excluded(name: str) -> bool:
    """Whether a module is in the agent's archive, or is the copying program."""
    return name.partition(".")[0] in ("muster_worker", "__main__")


def copy_modules(result: Mapping[str, Path], modules: Path, extensions: Path) -> list[Path]:
    """Copy the modules to the interpreter's folders, compiled. Returns the extension modules."""
    libraries = []
    for name, file in sorted(result.items()):
        if file.suffix == ".py":
            inside = Path(*name.split("."))
            compiled = modules / (inside / "__init__.pyc" if file.stem == "__init__" else inside.with_suffix(".pyc"))
            # Don't check sources: the folder is read-only, and an image layer changes the files' times.
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(file), str(compiled), f"<{name}>", doraise=True, invalidation_mode=mode)
        elif file.name.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
            libraries.append(Path(shutil.copy(file, extensions)))
    return libraries


def copy_libraries(loader: str, programs: Sequence[Path], folder: Path) -> None:
    """Copy the programs' shared libraries to `folder`. Raises `BuildError` if one is missing."""
    result: dict[str, str] = {}
    for program in programs:
        listing = run_command([loader, "--list", str(program)])
        missing = _ABSENT.search(listing)
        if missing is not None:
            raise BuildError(f"{program.name} needs {missing.group(1)}, which isn't on this machine")
        result.update(_LIBRARY.findall(listing))
    # glibc loads it when a thread ends
    result["libgcc_s.so.1"] = str(Path(result["libc.so.6"]).with_name("libgcc_s.so.1"))
    for name, file in result.items():
        shutil.copy(file, folder / name)


def set_library_paths(program: Path, loader: str) -> None:
    """Make a program use its own loader and libraries in any environment."""
    library = f"{INSTALL_PATH}/lib"
    # Use DT_RPATH, not DT_RUNPATH: it has priority over LD_LIBRARY_PATH, and applies to indirect dependencies.
    patch_file(program, "--set-interpreter", f"{library}/{loader}", "--force-rpath", "--set-rpath", library)
    for file in (program.parents[1] / "lib").rglob("*.so*"):
        if query_property(file, "--print-rpath"):
            patch_file(file, "--remove-rpath")


def disable_ld_variables(loader: Path, program: Path) -> None:
    """Patch a loader to ignore variables that begin with LD_. Raises `BuildError` if that fails.

    A library that an image preloads is built for the image's C library and would crash this program. The variables
    stay in the environment, because the ranks use the image's loader.
    """
    code = loader.read_bytes()
    for pattern, replacement in _LD_PATTERNS:
        code = re.sub(pattern, replacement, code, flags=re.DOTALL)
    loader.write_bytes(code)
    command = [str(loader), "--library-path", str(loader.parent), str(program), "--version"]
    completed = subprocess.run(command, check=False, capture_output=True, text=True, env={"LD_PRELOAD": "/none"})
    if completed.returncode != 0 or completed.stderr:
        raise BuildError(f"{loader.name} can't be patched to ignore LD_PRELOAD: {completed.stderr.strip()}")


def query_property(file: Path, option: str) -> str:
    """Query a file's property with patchelf."""
    return run_command(["patchelf", option, str(file)]).strip()


def patch_file(file: Path, *options: str) -> None:
    """Change a file with patchelf."""
    run_command(["patchelf", *options, str(file)])


def run_command(command: Sequence[str]) -> str:
    """Run a command and return its output. Raises `BuildError` with the output if it fails."""
    completed = subprocess.run(command, check=False, capture_output=True, text=True)
    if completed.returncode != 0:
        raise BuildError(f"`{' '.join(command)}` failed: {(completed.stdout + completed.stderr).strip()}")
    return completed.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
