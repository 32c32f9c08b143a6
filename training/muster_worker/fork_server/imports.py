"""Which modules a script will import of those that take long."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Sequence, Set

MAX_FILES = 200
MAX_FILE_BYTES = 1024 * 1024

TORCH = ("torch", "torch.distributed", "torch._dynamo")
"""The first optimizer step imports `torch._dynamo`, which takes as long as torch itself."""

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*([^#\n]*)|import[ \t]+([\w., \t]+))", re.MULTILINE)

_TORCH_LIBRARIES = (
    *("accelerate", "deepspeed", "diffusers", "ignite", "lightning", "pytorch_lightning", "sentence_transformers"),
    *("timm", "torch", "torchaudio", "torchtext", "torchvision", "transformers", "trl"),
)


def find_imports(script: str, folders: Sequence[str]) -> Sequence[str]:
    """The modules to import before `script`. `folders` are those in which it finds modules of its own."""
    return TORCH if not _names_of(script, folders).isdisjoint(_TORCH_LIBRARIES) else ()


def _names_of(script: str, folders: Sequence[str]) -> Set[str]:
    """The modules that a script and its own modules import, without those of their packages."""
    names: Set[str] = set()
    files: List[str] = [script]
    for file in files:
        for name in _imported_by(file):
            if name.partition(".")[0] not in names:
                names.add(name.partition(".")[0])
            for own in _own_files(name, folders):
                if own not in files and len(files) < MAX_FILES:
                    files.append(own)
    return names


def _own_files(name: str, folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        path = os.path.join(folder, *name.split("."))
        for file in (f"{path}.py", os.path.join(path, "__init__.py")):
            if os.path.isfile(file):
                yield file


def _imported_by(file: str) -> Iterator[str]:
    try:
        if os.path.getsize(file) > MAX_FILE_BYTES:
            return
        with open(file, encoding="utf-8", errors="replace") as source:
            text = source.read()
    except OSError:
        return  # the rank's own process reports it
    # No parser: this Python may be older than the script's.
    for match in _IMPORT.finditer(text):
        module, of_module, plain = match.groups()
        if plain is not None:
            yield from (part.split()[0] for part in plain.split(",") if part.split())
            continue
        yield module
        yield from (f"{module}.{part.split()[0]}" for part in of_module.strip("() \\").split(",") if part.split())
