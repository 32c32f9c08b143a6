"""Parses the part of the Dockerfile language that muster's own Dockerfile uses, and refuses everything else."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from string import Template

from cluster.say import CannotGoOn


@dataclass(frozen=True)
class Copy:
    """Copy files from the build's context, or from another stage, to an absolute path."""

    sources: tuple[str, ...]
    target: str
    stage: str = ""


@dataclass(frozen=True)
class Run:
    """Run a shell command in a folder."""

    command: str
    folder: str


@dataclass(frozen=True)
class Stage:
    """One FROM and the instructions after it: steps that create files, and settings of the container."""

    name: str
    base: str
    folder: str = "/"
    steps: tuple[Copy | Run, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def parse(text: str) -> tuple[Stage, ...]:
    """Return the stages in their order. Raises CannotGoOn for unknown instructions."""
    stages: list[Stage] = []
    defaults: dict[str, str] = {}
    for word, arguments in instructions(text):
        if word == "ARG" and not stages:
            name, _, default = arguments.partition("=")
            defaults[name] = default
        elif word == "FROM":
            stages.append(begin(Template(arguments).safe_substitute(defaults), stages))
        elif not stages:
            raise CannotGoOn(f"Dockerfile: {word} before the first FROM is not understood by the tests' builder.")
        else:
            stages[-1] = add(stages[-1], word, arguments)
    return tuple(stages)


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Return each instruction's name and arguments, without comments. Continued lines are joined."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n", "", lines).splitlines():
        if line.strip():
            word, _, arguments = line.strip().partition(" ")
            yield word, arguments.strip()


def begin(arguments: str, earlier: Sequence[Stage]) -> Stage:
    """FROM base [AS name]; an earlier stage also passes on its settings."""
    match arguments.split():
        case [base]:
            name = ""
        case [base, "AS", name]:
            pass
        case _:
            raise CannotGoOn(f"Dockerfile: `FROM {arguments}` is not understood by the tests' builder.")
    parent = next((stage for stage in earlier if stage.name == base), Stage(name, base))
    return replace(parent, name=name, base=base, steps=())


def add(stage: Stage, word: str, arguments: str) -> Stage:
    """Return the stage with one more instruction."""
    adders: dict[str, Callable[[], Stage]] = {
        "RUN": lambda: replace(stage, steps=(*stage.steps, Run(arguments, stage.folder))),
        "COPY": lambda: replace(stage, steps=(*stage.steps, copy(arguments, stage.folder))),
        "WORKDIR": lambda: replace(stage, folder=below(stage.folder, arguments)),
        "ENV": lambda: replace(stage, environment=(*stage.environment, *pairs(arguments))),
        "LABEL": lambda: replace(stage, labels=(*stage.labels, *pairs(arguments))),
        "USER": lambda: replace(stage, user=arguments),
        "ENTRYPOINT": lambda: replace(stage, entrypoint=tuple(json.loads(arguments))),
        "CMD": lambda: replace(stage, command=tuple(json.loads(arguments))),
    }
    if word not in adders:
        raise CannotGoOn(f"Dockerfile: {word} is not understood by the tests' builder (tests/cluster/dockerfile.py).")
    return adders[word]()


def copy(arguments: str, folder: str) -> Copy:
    """COPY [--from=stage] source... target."""
    words = arguments.split()
    stage = ""
    if words[0].startswith("--from="):
        stage = words.pop(0).removeprefix("--from=")
    if words[0].startswith("--"):
        raise CannotGoOn(f"Dockerfile: COPY {words[0]} is not understood by the tests' builder.")
    *sources, target = words
    return Copy(tuple(sources), below(folder, target), stage)


def below(folder: str, path: str) -> str:
    """Resolve a path relative to a folder. A trailing slash remains: it marks a folder."""
    path = path.removeprefix("./") or "./"
    if path.startswith("/"):
        return path
    return f"{folder.rstrip('/')}/" if path == "./" else f"{folder.rstrip('/')}/{path}"


def pairs(arguments: str) -> Iterator[tuple[str, str]]:
    """Parse any number of name=value."""
    for word in shlex.split(arguments):
        name, equals, value = word.partition("=")
        if not equals or "$" in value:
            raise CannotGoOn(f"Dockerfile: `{word}` is not understood by the tests' builder: name=value, no variables.")
        yield name, value
