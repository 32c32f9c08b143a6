"""Shell completion: `muster completion`, the names of jobs, and the completion of `kubectl muster`.

Completion never prints an error and never makes a shell wait: without an answer within a second there are no names.
"""
# ruff: noqa: PLC0415 - only completion imports these modules

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable
from typing import Annotated, Literal

import typer

_SECONDS = 0.9
"""How long completion waits for a cluster, with its own time below a second."""

_COMPLETE_VARIABLE = "_MUSTER_COMPLETE"
_NO_FILES = ":4"
_FILES = ":0"
"""Cobra's directives after the completions, which kubectl reads: whether the shell also completes names of files."""

Shell = Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.")]


def completion(shell: Shell) -> None:
    """Print the completion script of a shell. `muster --install-completion` installs it for the current shell."""
    from muster.cli.commands import app

    os.environ[_COMPLETE_VARIABLE] = f"source_{shell}"
    app(prog_name="muster", complete_var=_COMPLETE_VARIABLE)


def complete_job(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of jobs that begin with this text; none if the cluster does not answer at once."""
    namespace = ctx.params.get("namespace")
    names: list[str] = []

    def fetch() -> None:
        # Whatever goes wrong, a shell that completes a word must not show it.
        try:
            names.extend(_list_names(namespace if isinstance(namespace, str) else None))
        except Exception:  # noqa: BLE001 - see above
            names.clear()

    # The thread ends with the process, also while a plug-in for credentials or the cluster keeps it waiting.
    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    return sorted(name for name in tuple(names) if name.startswith(incomplete))


def _list_names(namespace: str | None) -> Iterable[str]:
    from muster.api.json_fields import read_mapping, read_string
    from muster.api.names import NAME_PATTERN
    from muster.clients.kubernetes.direct_access import find_direct_access
    from muster.clients.kubernetes.direct_requests import list_objects
    from muster.objects.kubernetes.kinds import JOB_IDENTITIES

    access = find_direct_access(os.environ)
    if access is None:
        return []
    jobs = list_objects(access, JOB_IDENTITIES, namespace or access.namespace, _SECONDS)
    names = [read_string(read_mapping(job.get("metadata")).get("name")) for job in jobs]
    return [name for name in names if re.fullmatch(NAME_PATTERN, name)]


def complete_for_kubectl() -> None:
    """Run as `kubectl_complete-muster`: print what the last argument can become, as kubectl expects it of a plug-in."""
    import shlex
    from contextlib import redirect_stdout, suppress
    from io import StringIO

    from muster.cli.commands import app

    # fish's form is kubectl's as well: a completion and its description, with a tab between them.
    *words, last = sys.argv[1:] or [""]
    os.environ[_COMPLETE_VARIABLE] = "complete_fish"
    os.environ["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    os.environ["_TYPER_COMPLETE_ARGS"] = f"{shlex.join(['muster', *words])} {shlex.quote(last) if last else ''}"
    with redirect_stdout(StringIO()) as output, suppress(SystemExit):
        app(prog_name="muster", complete_var=_COMPLETE_VARIABLE)
    lines = [line for line in output.getvalue().splitlines() if line]
    sys.stdout.write("".join(f"{line}\n" for line in (*lines, _NO_FILES if lines else _FILES)))
