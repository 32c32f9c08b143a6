"""`muster operator` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from typing import Annotated

import typer

Host = Annotated[str, typer.Option(help="The address to listen on; :: for IPv6.")]

Namespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--namespace", metavar="NAMESPACE", help="A namespace whose jobs to run. May be repeated. [default: all]"
    ),
]

ConfigFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="The configuration file for node pools, SageMaker, storage and tenancy."),
]

CollectorUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="The collector's URL for agents. [default: https://muster-collector.<ns>.svc:<port>]"
    ),
]

CollectorAddress = Annotated[
    list[str] | None,
    typer.Option(
        "--collector-address",
        metavar="ADDRESS[,ADDRESS]",
        help="The pod's IP addresses. The leader writes its own to the Service <lease-name>-collector. [default: none]",
    ),
]

AgentImage = Annotated[
    str,
    typer.Option(metavar="IMAGE", help="The operator's image, which provides Python for agents in images without it."),
]

StorageImage = Annotated[str, typer.Option(metavar="IMAGE", help="The operator's image, which syncs files with S3.")]

PullPolicy = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help="The imagePullPolicy of both images: Always, IfNotPresent or Never. [default: Kubernetes']",
    ),
]


WebhookPort = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="The port of the admission webhook. [default: none]"),
]

WebhookAddress = Annotated[
    str | None,
    typer.Option(metavar="HOST", help="The webhook's host name. [default: muster-webhook.<ns>.svc]"),
]

MetricsPort = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="The port of /metrics, for Prometheus. [default: none]"),
]

LeaseNamespace = Annotated[
    str | None, typer.Option(metavar="NAMESPACE", help="The Lease's namespace. [default: the operator's]")
]

LeaseName = Annotated[
    str, typer.Option(metavar="NAME", help="The name of the Lease, and the prefix of the Secret's name.")
]

Identity = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="This replica's name in the Lease. A process with the holder's name leads at once. [default: random]",
    ),
]

ShardText = Annotated[
    str,
    typer.Option(
        metavar="INDEX/COUNT",
        help="Run one of COUNT parts of the jobs, counted from 0. Each has its own Lease and leader (docs/scale.md).",
    ),
]


def operator(
    *,
    namespace: Namespaces = None,
    host: Host = "0.0.0.0",  # noqa: S104 - from any pod
    collector_port: Annotated[int, typer.Option(min=1, max=65535, help="The collector's port.")] = 8443,
    collector_url: CollectorUrl = None,
    collector_address: CollectorAddress = None,
    health_port: Annotated[int, typer.Option(min=1, max=65535, help="The port of /healthz and /readyz.")] = 8080,
    cluster_domain: Annotated[str, typer.Option(help="The cluster's DNS domain.")] = "cluster.local",
    agent_image: AgentImage = "",
    storage_image: StorageImage = "",
    pull_policy: PullPolicy = "",
    webhook_port: WebhookPort = None,
    webhook_address: WebhookAddress = None,
    metrics_port: MetricsPort = None,
    lease_namespace: LeaseNamespace = None,
    lease_name: LeaseName = "muster",
    identity: Identity = "",
    shard: ShardText = "0/1",
    config: ConfigFile = None,
    log_format: Annotated[str, typer.Option(metavar="plain|json", help="The format of log lines.")] = "plain",
) -> None:
    """Run the jobs of a cluster. muster's chart runs this command in pods; one of the pods is the leader."""
    from muster.cli.operator import operator as operator_process
    from muster.controller.options import ImageOptions, ObjectNames, OperatorOptions, WebhookOptions

    options = OperatorOptions(
        namespaces=tuple(dict.fromkeys(namespace or ())),
        host=host,
        collector_port=collector_port,
        collector_url=operator_process.read_collector_url(collector_url),
        collector_addresses=operator_process.read_addresses(collector_address or ()),
        health_port=health_port,
        cluster_domain=cluster_domain,
        images=ImageOptions(agent_image, storage_image, operator_process.read_pull_policy(pull_policy)),
        names=ObjectNames(lease_namespace, lease_name, operator_process.read_shard(shard), identity),
        webhook=None if webhook_port is None else WebhookOptions(webhook_port, webhook_address),
        metrics_port=metrics_port,
    )
    raise typer.Exit(operator_process.run_operator(options, config, log_format))
