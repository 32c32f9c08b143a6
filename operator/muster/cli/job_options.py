"""The options of several commands about a job."""

from __future__ import annotations

from typing import Annotated

import typer

from muster.cli.completion import complete_job

File = Annotated[
    str, typer.Option("--file", "-f", metavar="FILE", help="The job's YAML or JSON; - reads standard input.")
]
Templates = Annotated[
    list[str] | None,
    typer.Option(
        "--template", metavar="FILE", help="A file with the template that spec.templateRef names. May be repeated."
    ),
]
Name = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.", autocompletion=complete_job)]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAMESPACE", help="The job's namespace. [default: the kubeconfig's]"),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="json|yaml|wide", help="Print JSON, YAML or more columns."),
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Only send the request.")]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", min=0, help="Wait no longer than this: exit code 124."),
]
