"""Read a container's command line, and replace references to variables as Kubernetes does. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.kubernetes.environment import Environment
from muster.importers.kubernetes.references import expand, list_references
from muster.importers.kubernetes.report import Location, Report
from muster_worker.contract.rendezvous import is_rendezvous_variable


@dataclass(frozen=True)
class ContainerCommand:
    """The words that a container runs. $(NAME) remains where only the cluster knows the variable's value."""

    words: tuple[str, ...]
    location: Location
    environment: Environment


def read_command(
    container: Mapping[str, JSON], location: Location, environment: Environment, report: Report
) -> ContainerCommand | None:
    """Return the command and arguments of a valid container, with the command at `location`; None with a problem."""
    command, args = _read_texts(container.get("command")), _read_texts(container.get("args"))
    if not command:
        message = "missing, and required: muster doesn't use the image's entry point; write the program here"
        report.add(location, message)
        return None
    words = tuple(expand(word, environment.texts) for word in (*command, *args))
    return ContainerCommand(words, location, environment)


def report_references(words: Sequence[str], command: ContainerCommand, report: Report) -> bool:
    """Report references in the words of a job's command that muster can't replace; return whether there are any."""
    names = [name for word in words for name in list_references(word)]
    known = [name for name in names if name in command.environment.texts or is_rendezvous_variable(name)]
    unknown = names if command.environment.has_sources else known
    for name in dict.fromkeys(unknown):
        report.add(
            command.location,
            f"found $({name}), which Kubernetes would replace; muster runs the command unchanged: read the variable "
            f"in the script, or run a shell: [sh, -c, '... ${name}']",
        )
    return bool(unknown)


def _read_texts(value: JSON) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
