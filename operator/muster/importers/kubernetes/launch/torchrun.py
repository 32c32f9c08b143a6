"""Parse torchrun's command line: the options that muster sets itself, and the script. Pure.

The options are those of torch.distributed.run of torch 2.8, whose names argparse lets users abbreviate.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.importers.kubernetes.launch.shell_script import Word

_WORLD_OPTIONS = {
    **dict.fromkeys(("nnodes", "nproc-per-node", "node-rank", "master-addr", "master-port", "max-restarts"), True),
    **dict.fromkeys(("rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "local-addr"), True),
    **dict.fromkeys(("standalone", "module", "no-python", "run-path", "use-env", "virtual-local-rank"), False),
}
"""The options that muster translates or sets, and whether each has a value."""

_PASSED_OPTIONS = {
    **dict.fromkeys(("monitor-interval", "start-method", "role", "log-dir", "redirects", "tee"), True),
    **dict.fromkeys(("local-ranks-filter", "event-log-handler", "logs-specs", "numa-binding"), True),
    **dict.fromkeys(("signals-to-handle", "duplicate-stdout-filters", "duplicate-stderr-filters"), True),
    "shutdown-timeout": True,
}
"""The options that a job passes on to torchrun."""

_SHORT_OPTIONS = {"m": "module", "r": "redirects", "t": "tee"}

_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_PYTHON = re.compile(r"python[0-9.]*")


class UnknownOption(Exception):
    """An option of torchrun that muster doesn't know. The message is the option."""


@dataclass(frozen=True)
class TorchrunLine:
    """A parsed command line. `options` has the world's options, and `passed` those for launcher.torchrun.args."""

    python: str
    options: dict[str, Word] = field(default_factory=dict)
    passed: list[Word] = field(default_factory=list)
    program: tuple[Word, ...] = ()
    is_old_launcher: bool = False

    def has(self, name: str) -> bool:
        """Whether the option is set."""
        return name in self.options


def is_torchrun(words: Sequence[str]) -> bool:
    """Whether the command is torchrun, also as a Python module."""
    return find_arguments(words) is not None


def find_arguments(words: Sequence[str]) -> int | None:
    """Return the position of torchrun's first argument; None for other commands."""
    if not words:
        return None
    if posixpath.basename(words[0]) == "torchrun":
        return 1
    if not _PYTHON.fullmatch(posixpath.basename(words[0])):
        return None
    index = 1
    while index + 1 < len(words) and words[index].startswith("-"):
        if words[index] == "-m":
            return index + 2 if words[index + 1] in _MODULES else None
        index += 2 if words[index] in ("-W", "-X") else 1
    return None


def parse_torchrun(words: Sequence[Word]) -> TorchrunLine:
    """Parse the words of a torchrun command. Raises `UnknownOption`."""
    texts = [word.text for word in words]
    index = find_arguments(texts) or 1
    line = TorchrunLine(
        _find_python(texts[0]), is_old_launcher=index > 1 and texts[index - 1] == "torch.distributed.launch"
    )
    while index < len(words) and texts[index].startswith("-") and texts[index] != "--":
        index = _parse_option(words, index, line)
    if index < len(words) and texts[index] == "--":
        index += 1
    return TorchrunLine(line.python, line.options, line.passed, tuple(words[index:]), line.is_old_launcher)


def _parse_option(words: Sequence[Word], index: int, line: TorchrunLine) -> int:
    """Read the option at `index` into `line`; return the index after it and its value."""
    word = words[index]
    name, equals, text = word.text.partition("=")
    option = _find_option(name)
    has_value = _PASSED_OPTIONS.get(option, _WORLD_OPTIONS.get(option, False))
    if has_value and not equals and index + 1 >= len(words):
        raise UnknownOption(f"{name}, which lacks a value")
    end = index + (2 if has_value and not equals else 1)
    if option in _WORLD_OPTIONS:
        line.options[option] = Word(text, word.expands) if equals else words[end - 1]
    else:
        line.passed.extend(words[index:end])
    return end


def _find_option(name: str) -> str:
    if not name.startswith("--"):
        if name[1:] in _SHORT_OPTIONS:
            return _SHORT_OPTIONS[name[1:]]
        raise UnknownOption(name)
    text = name[2:].replace("_", "-")
    known = (*_WORLD_OPTIONS, *_PASSED_OPTIONS)
    matches = [text] if text in known else [option for option in known if text and option.startswith(text)]
    if len(matches) != 1:
        raise UnknownOption(name)
    return matches[0]


def _find_python(program: str) -> str:
    """Return the Python that has torchrun's torch."""
    folder, name = posixpath.split(program)
    if _PYTHON.fullmatch(name):
        return program
    return posixpath.join(folder, "python") if folder else "python"


OPTION_IN_SCRIPT = re.compile(
    r"\s--?(?P<name>"
    + "|".join(name.replace("-", "[-_]") for name, has_value in _WORLD_OPTIONS.items() if has_value)
    + r")(?:=|\s+)(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|'\"]+)"
)
"""An option of the world with its value, in the text of a shell script."""

STANDALONE_IN_SCRIPT = re.compile(r"\s--standalone(?=\s)")
