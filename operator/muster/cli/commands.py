"""The commands and their options. Each imports its own parts, so that none waits for another's."""
# ruff: noqa: PLC0415 - as said above

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="muster",
    help="Distributed training jobs, and the truth about every rank.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

File = Annotated[
    str, typer.Option("--file", "-f", metavar="FILE", help="The job's YAML or JSON; - reads standard input.")
]

Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="The operator's configuration file, for the node pools that it has."),
]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's shape for a flag
    from importlib.metadata import version

    if wanted:
        typer.echo(f"muster {version('muster')}")
        raise typer.Exit


@app.callback()
def _muster(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    *,
    file: File,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=DIR", help="Read this input from DIR instead. May be repeated."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", metavar="DIR", help="Keep snapshots in DIR, and resume from there.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="The run's folder. [default: muster-runs/<job>-<id>]")
    ] = None,
    logs: Annotated[bool, typer.Option("--logs", help="Show what the ranks print.")] = False,
    rank: Annotated[
        list[int] | None, typer.Option("--rank", metavar="RANK", help="Show only this rank's lines. May be repeated.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="yaml|json", help="Print the final resource on standard output."),
    ] = None,
) -> None:
    """Run a job on this machine. Exit code 0 only when it is Complete."""
    from muster.cli.options import RunOptions, read_inputs, read_output
    from muster.cli.run import run_job

    options = RunOptions(
        file=file,
        inputs=read_inputs(inputs or ()),
        checkpoint=checkpoint,
        folder=folder,
        shows_logs=logs or bool(rank),
        ranks=frozenset(rank or ()),
        output=read_output(output),
    )
    raise typer.Exit(run_job(options))


@app.command()
def render(*, file: File, config: Config = None) -> None:
    """Print what a job becomes: itself with its defaults, its Service and ConfigMap, and what each node runs.

    For every kind of node its pod, and as a comment above it the command that starts its ranks and what they see. No
    cluster is asked; the same file gives the same text.
    """
    from muster.backends.agent_archive import agent_archive
    from muster.cli.config_file import read_config_file
    from muster.cli.job_file import read_job
    from muster.cli.render import render_text

    typer.echo(render_text(read_job(file), agent_archive(), read_config_file(config)), nl=False)


@app.command()
def explain(
    *,
    file: File,
    node: Annotated[int, typer.Option("--node", metavar="N", min=0, help="Explain this node's pod.")] = 0,
    config: Config = None,
) -> None:
    """Say of every setting that muster adds to a node's pod and ranks what it is, where it comes from, and why."""
    from muster.cli.config_file import read_config_file
    from muster.cli.explain import explain_job
    from muster.cli.job_file import read_job

    explain_job(read_job(file), node, read_config_file(config))


@app.command()
def validate(
    *,
    file: Annotated[
        list[str],
        typer.Option("--file", "-f", metavar="FILE", help="A file of jobs; - reads standard input. May be repeated."),
    ],
    config: Config = None,
) -> None:
    """Check files of jobs. Exit code 1: a job is not valid, 2: a file can't be read.

    Each problem is a line on standard error: `job.yaml:12: spec.nodes: found 0; allowed are 1 to 10000`. Resources of
    other kinds are named and passed over: a file may hold a job beside its ConfigMap.
    """
    from muster.cli.config_file import read_config_file
    from muster.cli.validate import check_files

    raise typer.Exit(check_files(file, read_config_file(config)))


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinition, for `kubectl apply -f -`."""
    from muster.api.crd import crd_yaml

    typer.echo(crd_yaml(), nl=False)


Name = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Its namespace. [default: the kubeconfig's]"),
]


@app.command()
def ranks(*, job: Name, namespace: Namespace = None) -> None:
    """Show every rank of a job on a cluster: live on a terminal, until it is over; else once."""
    from muster.cli.cluster import Wanted
    from muster.cli.ranks import show_ranks

    raise typer.Exit(show_ranks(Wanted(job, namespace)))


@app.command()
def logs(
    *,
    job: Name,
    namespace: Namespace = None,
    rank: Annotated[
        list[int] | None, typer.Option("--rank", metavar="RANK", help="Show only this rank's lines. May be repeated.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until the job is over.")
    ] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", metavar="LINES", min=0, help="Begin with the last lines of each node.")
    ] = None,
) -> None:
    """Print what the ranks of a job on a cluster print, each line with its rank."""
    from muster.cli.cluster import Wanted
    from muster.cli.logs import Asked, follow_logs, show_logs

    asked = Asked(frozenset(rank or ()), tail)
    show = follow_logs if follow else show_logs
    raise typer.Exit(show(Wanted(job, namespace), asked))


@app.command()
def wait(
    *,
    job: Name,
    namespace: Namespace = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Give up after so long: exit code 124.")
    ] = None,
) -> None:
    """Wait until a job on a cluster is over. Exit code 0 only when it is Complete."""
    from muster.cli.cluster import Wanted
    from muster.cli.wait import wait_for_job

    raise typer.Exit(wait_for_job(Wanted(job, namespace), timeout))


CollectorUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="How they reach it. [default: https://muster-collector.<ns>.svc:<port>]"),
]

AgentImage = Annotated[
    str, typer.Option(metavar="IMAGE", help="Has the Python for agents in images without one: the operator's own.")
]

AgentPullPolicy = Annotated[
    str, typer.Option(metavar="POLICY", help="How kubelets fetch it: Always, IfNotPresent or Never. [theirs]")
]


LeaseNamespace = Annotated[
    str | None, typer.Option(metavar="NAMESPACE", help="Where replicas agree on who leads. [default: its own]")
]

LeaseName = Annotated[str, typer.Option(metavar="NAME", help="The Lease, and what its Secret begins with.")]


@app.command()
def operator(
    *,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", metavar="NAMESPACE", help="Run this namespace's jobs. May be repeated. [all]"),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; :: for IPv6.")] = "0.0.0.0",  # noqa: S104 - from any pod
    collector_port: Annotated[int, typer.Option(min=1, max=65535, help="Agents report here.")] = 8443,
    collector_url: CollectorUrl = None,
    health_port: Annotated[int, typer.Option(min=1, max=65535, help="/healthz and /readyz are here.")] = 8080,
    cluster_domain: Annotated[str, typer.Option(help="What Services' names end in.")] = "cluster.local",
    agent_image: AgentImage = "",
    agent_pull_policy: AgentPullPolicy = "",
    lease_namespace: LeaseNamespace = None,
    lease_name: LeaseName = "muster",
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Its configuration, read once: the node pools that jobs name.")
    ] = None,
    log_format: Annotated[str, typer.Option(metavar="plain|json", help="What log lines look like.")] = "plain",
) -> None:
    """Run the jobs of a cluster. Started in a pod by muster's chart; runs beside others of its kind, one leading."""
    from muster.api.operator_config import OperatorConfig
    from muster.cli.config_file import read_config_file
    from muster.cli.operator import read_collector_url, read_log_format, read_pull_policy, run_operator
    from muster.runtime.cluster.replica import OperatorOptions

    options = OperatorOptions(
        namespaces=tuple(dict.fromkeys(namespace or ())),
        host=host,
        collector_port=collector_port,
        collector_url=read_collector_url(collector_url),
        health_port=health_port,
        cluster_domain=cluster_domain,
        agent_image=agent_image,
        agent_pull_policy=read_pull_policy(agent_pull_policy),
        lease_namespace=lease_namespace,
        lease_name=lease_name,
        node_pools=(read_config_file(config) or OperatorConfig()).node_pools,
    )
    raise typer.Exit(run_operator(options, read_log_format(log_format)))
