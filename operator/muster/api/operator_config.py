"""The operator's configuration file: the node pools that jobs may name."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from muster.api.document import JSON, Document, Path, quoted, shown
from muster.api.node_pool import ONE_TYPE, NamedPool, two_types
from muster.api.problems import InvalidResource, Problem
from muster.api.sentences import found, sentence, unknown_field

MAX_POOLS = 500

_FIELDS = ("nodePools",)
_AS_IN_A_JOB: Path = ("spec", "nodePool")
"""A pool has the same fields there, which the sentences name."""

_Finding = tuple[Path, str]


@dataclass(frozen=True)
class OperatorConfig:
    """All that the file says, in its order."""

    node_pools: tuple[NamedPool, ...] = ()


def read_config(document: Document) -> OperatorConfig:
    """The configuration that a document is. Raises `InvalidResource` with every problem found, each with its field."""
    value = document.value
    pools: list[NamedPool] = []
    findings = tuple(_findings(value, pools))
    if findings:
        problems = tuple(Problem(shown(path), message, document.line(path)) for path, message in findings)
        raise InvalidResource(problems, document.source)
    return OperatorConfig(tuple(pools))


def _findings(value: JSON, pools: list[NamedPool]) -> Iterator[_Finding]:
    """All that is wrong; what is right goes to `pools`."""
    if not isinstance(value, dict):
        yield (), f"found {found(value)}; fields are expected: {', '.join(_FIELDS)}"
        return
    yield from (((key,), unknown_field(key, _FIELDS)) for key in value if key not in _FIELDS)
    entries = value.get("nodePools")
    if entries is None:
        return
    if not isinstance(entries, list) or len(entries) > MAX_POOLS:
        yield ("nodePools",), f"found {found(entries)}; a list of at most {MAX_POOLS} pools is expected"
        return
    for index, entry in enumerate(entries):
        yield from _pool(("nodePools", index), entry, pools)


def _pool(path: Path, entry: JSON, pools: list[NamedPool]) -> Iterator[_Finding]:
    try:
        # From JSON, where a list is a tuple's only form; strict refuses Python's lists.
        pool = NamedPool.model_validate_json(json.dumps(entry), by_alias=True, by_name=False)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield (*path, *detail["loc"]), sentence((*_AS_IN_A_JOB, *detail["loc"]), [detail])
        return
    contradiction = two_types(pool)
    if contradiction is not None:
        yield path, f"found {contradiction}; {ONE_TYPE}"
    if any(pool.name == other.name for other in pools):
        yield (*path, "name"), f"found {quoted(pool.name)} twice; jobs name a pool by it, so that each needs its own"
    pools.append(pool)
