"""Finds out whether a script imports torch, and whether it first changes a variable that torch reads."""

from __future__ import annotations

import os
import re

from muster_worker.fork_server.variables import is_read_after_imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Mapping, Optional, Sequence

MAX_FILES = 200
MAX_FILE_BYTES = 1024 * 1024

TORCH_MODULES = ("torch", "torch.distributed", "torch._dynamo")
"""The first optimizer step imports `torch._dynamo`, which takes as long as torch itself."""

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*([^#\n]*)|import[ \t]+([\w., \t]+))", re.MULTILINE)

_NAME = r"""[rb]?["'](\w+)["']"""
_COMMENT = re.compile(r"#[^\n]*")
_VARIABLE_CHANGE = re.compile(
    rf"\b(?:environb?\[\s*(?:{_NAME}|[^\]\n]*)\s*\]\s*=(?!=)|environb?\s*\|="
    rf"|(?:environb?\.(?:setdefault|pop|update|clear)|putenv|unsetenv|load_dotenv)\(\s*(?:{_NAME})?)"
)

_TORCH_LIBRARIES = (
    *("accelerate", "deepspeed", "diffusers", "ignite", "lightning", "pytorch_lightning", "sentence_transformers"),
    *("timm", "torch", "torchaudio", "torchtext", "torchvision", "transformers", "trl"),
)


def read_sources(script: str, folders: Sequence[str]) -> Dict[str, str]:
    """Read a script and the modules in `folders` that it imports. Returns the text of each file."""
    sources: Dict[str, str] = {}
    files: List[str] = [script]
    for file in files:
        sources[file] = _read(file)
        for name in _list_imports(sources[file]):
            if name.partition(".")[0] in _TORCH_LIBRARIES:  # installed in a folder of PYTHONPATH
                continue
            for imported_file in _find_files(name, folders):
                if imported_file not in files and len(files) < MAX_FILES:
                    files.append(imported_file)
    return sources


def find_imports(sources: Mapping[str, str]) -> Sequence[str]:
    """Return the modules that the fork server imports for a script with these sources."""
    names = {name.partition(".")[0] for text in sources.values() for name in _list_imports(text)}
    return TORCH_MODULES if not names.isdisjoint(_TORCH_LIBRARIES) else ()


def find_early_change(sources: Mapping[str, str]) -> Optional[str]:
    """Describe the first change of an environment variable that a later import of torch in the same source reads."""
    for file, text in sources.items():
        text_before_torch = text
        for match in _IMPORT.finditer(text):
            names = {name.partition(".")[0] for name in _list_modules(match)}
            if not match.group().startswith((" ", "\t")) and not names.isdisjoint(_TORCH_LIBRARIES):
                text_before_torch = text[: match.start()]
                break
        for match in _VARIABLE_CHANGE.finditer(_COMMENT.sub("", text_before_torch)):
            name = match.group(1) or match.group(2)
            if name is None or not is_read_after_imports(name):
                return f"{file} sets {name or 'variables'} before it imports torch"
    return None


def _find_files(name: str, folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        path = os.path.join(folder, *name.split("."))
        for file in (f"{path}.py", os.path.join(path, "__init__.py")):
            if os.path.isfile(file):
                yield file


def _list_imports(text: str) -> Iterator[str]:
    for match in _IMPORT.finditer(text):
        yield from _list_modules(match)


def _list_modules(match: re.Match[str]) -> Iterator[str]:
    # Don't parse the script: this Python may be older than the script's.
    module, from_names, import_names = match.groups()
    if import_names is not None:
        yield from (part.split()[0] for part in import_names.split(",") if part.split())
        return
    yield module
    yield from (f"{module}.{part.split()[0]}" for part in from_names.strip("() \\").split(",") if part.split())


def _read(file: str) -> str:
    try:
        if os.path.getsize(file) > MAX_FILE_BYTES:
            return ""
        with open(file, encoding="utf-8", errors="replace") as source:
            return source.read()
    except OSError:
        return ""  # the rank itself reports the error
