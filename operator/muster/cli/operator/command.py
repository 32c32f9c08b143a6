"""`muster operator` and its options."""
# ruff: noqa: PLC0415 - what it runs on is loaded by it alone

from __future__ import annotations

from typing import Annotated

import typer

Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", metavar="NAMESPACE", help="Run this namespace's jobs. May be repeated. [all]"),
]

ConfigFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Its configuration, read once: node pools, where SageMaker is, who may use what."
    ),
]

CollectorUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="How they reach it. [default: https://muster-collector.<ns>.svc:<port>]"),
]

CollectorAddress = Annotated[
    list[str] | None,
    typer.Option(
        "--collector-address",
        metavar="ADDRESS[,ADDRESS]",
        help="The pod's own, of either family: while it leads, the Service <lease-name>-collector leads there. [none]",
    ),
]

AgentImage = Annotated[
    str, typer.Option(metavar="IMAGE", help="Has the Python for agents in images without one: the operator's own.")
]

StorageImage = Annotated[str, typer.Option(metavar="IMAGE", help="Syncs jobs' files with S3: the operator's own.")]

PullPolicy = Annotated[
    str, typer.Option(metavar="POLICY", help="How kubelets fetch both: Always, IfNotPresent or Never. [theirs]")
]


WebhookPort = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="The API server asks here before it stores a job. [default: it doesn't]"),
]

WebhookAddress = Annotated[
    str | None,
    typer.Option(metavar="HOST", help="What it calls this one by. [default: muster-webhook.<ns>.svc]"),
]

LeaseNamespace = Annotated[
    str | None, typer.Option(metavar="NAMESPACE", help="Where replicas agree on who leads. [default: its own]")
]

LeaseName = Annotated[str, typer.Option(metavar="NAME", help="The Lease, and what its Secret begins with.")]


def operator(
    *,
    namespace: Namespaces = None,
    host: Annotated[str, typer.Option(help="The address to listen on; :: for IPv6.")] = "0.0.0.0",  # noqa: S104 - from any pod
    collector_port: Annotated[int, typer.Option(min=1, max=65535, help="Agents report here.")] = 8443,
    collector_url: CollectorUrl = None,
    collector_address: CollectorAddress = None,
    health_port: Annotated[int, typer.Option(min=1, max=65535, help="/healthz and /readyz are here.")] = 8080,
    cluster_domain: Annotated[str, typer.Option(help="What Services' names end in.")] = "cluster.local",
    agent_image: AgentImage = "",
    storage_image: StorageImage = "",
    pull_policy: PullPolicy = "",
    webhook_port: WebhookPort = None,
    webhook_address: WebhookAddress = None,
    lease_namespace: LeaseNamespace = None,
    lease_name: LeaseName = "muster",
    config: ConfigFile = None,
    log_format: Annotated[str, typer.Option(metavar="plain|json", help="What log lines look like.")] = "plain",
) -> None:
    """Run the jobs of a cluster. Started in a pod by muster's chart; runs beside others of its kind, one leading."""
    from muster.cli.operator import operator as reading
    from muster.controller.replica import OperatorOptions, WebhookOptions

    options = OperatorOptions(
        namespaces=tuple(dict.fromkeys(namespace or ())),
        host=host,
        collector_port=collector_port,
        collector_url=reading.read_collector_url(collector_url),
        collector_addresses=reading.read_addresses(collector_address or ()),
        health_port=health_port,
        cluster_domain=cluster_domain,
        agent_image=agent_image,
        storage_image=storage_image,
        pull_policy=reading.read_pull_policy(pull_policy),
        lease_namespace=lease_namespace,
        lease_name=lease_name,
        webhook=None if webhook_port is None else WebhookOptions(webhook_port, webhook_address),
    )
    raise typer.Exit(reading.run_operator(reading.configured(options, config), reading.read_log_format(log_format)))
