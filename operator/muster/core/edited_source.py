"""The edited code of `muster rerun`: which code an attempt runs, and how the status describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.api.document import quote
from muster.api.names import SOURCE_ANNOTATION
from muster.api.status.source import SourceStatus

if TYPE_CHECKING:
    # `muster validate` reads no status, and uses the facts.
    from muster.api.status.status import Status

NO_MEMORY_FOR_SOURCE = "NoMemoryForSource"
"""The reason of a problem: the ranks wait until the operator has memory for their edited code."""


@dataclass(frozen=True)
class RequestedSource:
    """The ConfigMap that the job's annotation names. Either `sha256` is set, or `problem` is why it can't be used."""

    config_map: str
    sha256: str = ""
    problem: str = ""


def find_source(
    previous: Status, requested_source: RequestedSource | None, *, has_started: bool
) -> SourceStatus | None:
    """Return the edited code of the current attempt; None if it runs the code of the spec.

    The code of an attempt does not change after its start. The status names the code before an agent receives it, so
    that a node that starts later gets the same code.
    """
    if has_started:
        return previous.source
    if requested_source is None:
        return None
    return (
        previous.source
        if requested_source.problem
        else SourceStatus(config_map=requested_source.config_map, sha256=requested_source.sha256)
    )


def describe_source(source: SourceStatus | None, requested_source: RequestedSource | None) -> tuple[str, ...]:
    """Describe, for the condition Accepted, the edited code that the ranks run or can't run.

    Users who compare the resource with its manifest in git can see the difference in this condition.
    """
    remarks = []
    if requested_source is not None and requested_source.problem:
        # The annotation may have any text, with escape sequences for the reader's terminal.
        name = (
            requested_source.config_map
            if requested_source.config_map.isprintable()
            else quote(requested_source.config_map)
        )
        remarks.append(f"{SOURCE_ANNOTATION}: ConfigMap {name} can't be used: {requested_source.problem}")
    if source is not None:
        remarks.append(f"the ranks run the edited code of ConfigMap {source.config_map}, not the code of the spec")
    return tuple(remarks)
