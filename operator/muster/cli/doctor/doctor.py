"""`muster doctor`: check a cluster, and say what to do. It changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import typer

from muster.cli.board.printable import replace_unprintable
from muster.cli.doctor.cluster_checks import check_efa, check_gpus, check_network_policy, check_permissions
from muster.cli.doctor.collector_answer import check_collector_answer, parse_collector_url
from muster.cli.doctor.finding import ASK_ADMINISTRATOR, Finding, format_findings, is_unknown
from muster.cli.doctor.installation import Cluster, find_deployments
from muster.cli.doctor.operator_checks import (
    check_collector,
    check_crd,
    check_lease,
    check_namespace,
    check_operator,
    check_webhook,
)
from muster.cli.errors import BadInput
from muster.cli.jobs.api_problems import explain_request_error
from muster.cli.jobs.cluster import run_with_client
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError

_FAILED = 1

Check = tuple[str, Callable[[Cluster], Awaitable[Finding]]]

CHECKS: tuple[Check, ...] = (
    ("CRD", check_crd),
    ("operator", check_operator),
    ("namespace", check_namespace),
    ("Lease", check_lease),
    ("webhook", check_webhook),
    ("collector", check_collector),
    ("NetworkPolicy", check_network_policy),
    ("GPUs", check_gpus),
    ("EFA", check_efa),
    ("permissions", check_permissions),
)
"""The checks by name, in the order of the output. Each may raise `ApiError`."""


def select_checks(names: tuple[str, ...]) -> tuple[Check, ...]:
    """Return the checks with these names, or all without names. Raises `BadInput` for an unknown name."""
    allowed = {name.lower(): (name, check) for name, check in CHECKS}
    for name in names:
        if name.lower() not in allowed:
            raise BadInput(f"--only: found {name!r}; allowed are {', '.join(name for name, _ in CHECKS)}")
    return tuple(allowed[name.lower()] for name in names) or CHECKS


def check_cluster(
    namespace: str | None, operator_namespace: str, checks: tuple[Check, ...], collector_urls: tuple[str, ...]
) -> int:
    """Print the result of each check, and of a request to each collector; return the exit code.

    Raises `BadInput` if the cluster does not answer.
    """
    urls = [parse_collector_url(url) for url in collector_urls]
    collectors: list[Check] = [(url.geturl(), partial(check_collector_answer, url)) for url in urls]

    async def work(client: Client, own_namespace: str) -> int:
        cluster = await _read_cluster(client, own_namespace, operator_namespace)
        has_failed = False
        for name, check in (*checks, *collectors):
            finding = await _run_check(cluster, check)
            has_failed = has_failed or finding.level == "failed"
            for line in format_findings([(name, finding)]):
                typer.echo(replace_unprintable(line))
        return _FAILED if has_failed else 0

    return run_with_client(namespace, work)


async def _read_cluster(client: Client, namespace: str, operator_namespace: str) -> Cluster:
    try:
        deployments = await find_deployments(client, operator_namespace)
    except ApiError as error:
        _raise_without_answer(error)
        return Cluster(client, namespace, operator_namespace, None)
    return Cluster(client, namespace, operator_namespace, deployments)


async def _run_check(cluster: Cluster, check: Callable[[Cluster], Awaitable[Finding]]) -> Finding:
    try:
        return await check(cluster)
    except ApiError as error:
        _raise_without_answer(error)
        return is_unknown(explain_request_error(error), ASK_ADMINISTRATOR)


def _raise_without_answer(error: ApiError) -> None:
    """Raise the error if the API server has not answered, so that all checks would fail in the same way."""
    if error.status == NO_RESPONSE:
        raise error
