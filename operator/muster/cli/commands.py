"""The commands and their options. Each command imports its modules itself, so that commands start fast."""
# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from typing import Annotated

import typer

from muster.cli.completion import completion
from muster.cli.crds.command import apply_crds
from muster.cli.describe.command import describe
from muster.cli.doctor.command import doctor
from muster.cli.import_command import import_command
from muster.cli.job_options import File, Name, Namespace, Output, Templates
from muster.cli.listing.command import list_command, top
from muster.cli.migrate.command import migrate
from muster.cli.operator.command import operator
from muster.cli.request_commands import restart, resume, suspend
from muster.cli.rerun_command import rerun
from muster.cli.run.command import run
from muster.cli.storage.commands import storage
from muster.cli.web.command import board
from muster.cli.web.served.command import board_server

app = typer.Typer(
    name="muster",
    help="Distributed training jobs on Kubernetes, SageMaker and this machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="The operator's configuration file, which has the node pools."),
]

AwsRegion = Annotated[
    str | None,
    typer.Option("--aws-region", metavar="REGION", help="The AWS region for a job that sets none."),
]

AwsAccount = Annotated[
    str | None,
    typer.Option(
        "--aws-account", metavar="ACCOUNT", help="The job's AWS account. [default: the account of the job's role]"
    ),
]

app.add_typer(storage, name="storage", hidden=True)


def _print_version(is_set: bool) -> None:  # noqa: FBT001 - typer calls it with the flag's value
    from muster.distribution import get_version

    if is_set:
        typer.echo(f"muster {get_version()}")
        raise typer.Exit


@app.callback()
def _muster(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


app.command()(run)
app.command()(board)


@app.command()
def render(
    *,
    file: File,
    template: Templates = None,
    config: Config = None,
    aws_region: AwsRegion = None,
    aws_account: AwsAccount = None,
) -> None:
    """Print a job with its defaults, and the objects that muster creates for it.

    A comment above each pod shows the ranks' command and environment. A job of backend SageMaker becomes the body of a
    CreateTrainingJob request. This command needs neither a cluster nor AWS. The same file always gives the same text.
    """
    from muster.cli.backend_commands import AwsOptions
    from muster.cli.backends import get_commands
    from muster.cli.config_file import read_config_file
    from muster.cli.job_file import read_job

    job, operator_config = read_job(file, template or ()), read_config_file(config)
    typer.echo(get_commands(job).render(job, AwsOptions(aws_region, aws_account), operator_config), nl=False)


@app.command()
def explain(
    *,
    file: File,
    template: Templates = None,
    node: Annotated[int, typer.Option("--node", metavar="N", min=0, help="The rank of the node to explain.")] = 0,
    config: Config = None,
) -> None:
    """Show every setting that muster adds to a node's pod and ranks, with its value, source and reason.

    If the job names a template, show also where each field of the job comes from.
    """
    from muster.cli.config_file import read_config_file
    from muster.cli.explain.explain import explain_job
    from muster.cli.explain.template_origins import explain_template
    from muster.cli.job_file import read_expanded_job

    job, expanded = read_expanded_job(file, template or ())
    explain_job(job, node, read_config_file(config), explain_template(expanded))


@app.command()
def validate(
    *,
    file: Annotated[
        list[str],
        typer.Option("--file", "-f", metavar="FILE", help="A file of jobs; - reads standard input. May be repeated."),
    ],
    template: Templates = None,
    config: Config = None,
    output: Output = None,
) -> None:
    """Check files of jobs. The exit code is 1 if a job is invalid, and 2 if a file can't be read.

    Each problem is a line on standard error: `job.yaml:12: spec.nodes: found 0; allowed are 1 to 10000`. Resources of
    other kinds are skipped with a message. With -o, standard output has a result for each job.
    """
    from muster.cli.config_file import read_config_file
    from muster.cli.output import read_text_format
    from muster.cli.render.validate import check_files

    raise typer.Exit(check_files(file, read_config_file(config), read_text_format(output), template or ()))


@app.command()
def crd(
    plural: Annotated[
        str | None, typer.Argument(metavar="PLURAL", help="Only this one, such as trainingtemplates.")
    ] = None,
) -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply --server-side -f -`."""
    from muster.api.crd import PLURALS, format_crd_yaml
    from muster.cli.errors import BadInput

    if plural is not None and plural not in PLURALS:
        raise BadInput(f"{plural}: expected {', '.join(PLURALS[:-1])} or {PLURALS[-1]}")
    typer.echo("---\n".join(format_crd_yaml(name) for name in PLURALS if plural in (None, name)), nl=False)


@app.command()
def schema() -> None:
    """Print the resource's JSON schema, with which editors complete and check job files."""
    from muster.api.editor_schema import format_editor_schema

    typer.echo(format_editor_schema(), nl=False)


@app.command()
def ranks(*, job: Name, namespace: Namespace = None, output: Output = None) -> None:
    """Show every rank of a job on a cluster. On a terminal, update the ranks until the job has ended.

    With -o, print the ranks once: -o json and -o yaml with the fields of status.ranks.details.
    """
    from muster.cli.jobs.job_reference import JobReference
    from muster.cli.jobs.ranks import show_ranks
    from muster.cli.output import read_text_format

    raise typer.Exit(show_ranks(JobReference(job, namespace), read_text_format(output)))


@app.command()
def logs(
    *,
    job: Name,
    namespace: Namespace = None,
    rank: Annotated[
        list[int] | None, typer.Option("--rank", metavar="RANK", help="Show only this rank's lines. May be repeated.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines until the job has ended.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", metavar="LINES", min=0, help="Start with each node's last LINES lines.")
    ] = None,
) -> None:
    """Print the output of the ranks of a job on a cluster, with the rank before each line."""
    from muster.cli.jobs.job_reference import JobReference
    from muster.cli.jobs.logs import LogSelection, follow_logs, show_logs

    selection = LogSelection(frozenset(rank or ()), tail)
    show = follow_logs if follow else show_logs
    raise typer.Exit(show(JobReference(job, namespace), selection))


@app.command()
def stacks(
    *,
    job: Name,
    namespace: Namespace = None,
    rank: Annotated[
        list[int] | None, typer.Option("--rank", metavar="RANK", help="Show only this rank. May be repeated.")
    ] = None,
) -> None:
    """Print the stacks of the ranks of a job on a cluster that hang, from the agents' logs."""
    from muster.cli.jobs.job_reference import JobReference
    from muster.cli.jobs.stacks import show_stacks

    raise typer.Exit(show_stacks(JobReference(job, namespace), frozenset(rank or ())))


@app.command()
def wait(
    *,
    job: Name,
    namespace: Namespace = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0, help="Stop waiting after this time, with exit code 124."),
    ] = None,
    output: Output = None,
) -> None:
    """Wait until a job on a cluster has ended. The exit code is 0 only if the job completes.

    With -o, print the job on standard output once it has ended: -o json and -o yaml its resource.
    """
    from muster.cli.jobs.job_reference import JobReference
    from muster.cli.jobs.wait import wait_for_job
    from muster.cli.output import read_text_format

    raise typer.Exit(wait_for_job(JobReference(job, namespace), timeout, read_text_format(output)))


app.command()(suspend)
app.command()(resume)
app.command()(restart)
app.command()(completion)
app.command("list")(list_command)
app.command()(top)
app.command()(describe)
app.command()(doctor)
app.command("apply-crds")(apply_crds)
app.command()(rerun)
app.command("import")(import_command)
app.command()(migrate)
app.command()(operator)
app.command("board-server")(board_server)


def keep_only_command(names: list[str]) -> None:
    """Keep only the command that the user has named, if there is one: typer reads the options of all, which is slow."""
    commands = [
        info for info in app.registered_commands if [info.name or getattr(info.callback, "__name__", "")] == names
    ]
    if commands:
        app.registered_commands = commands
        app.registered_groups = []
