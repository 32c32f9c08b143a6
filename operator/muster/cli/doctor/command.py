"""`muster doctor` and its options."""
# ruff: noqa: PLC0415 - only this command imports these modules

from __future__ import annotations

from typing import Annotated

import typer

from muster.cli.job_options import Namespace

OperatorNamespace = Annotated[
    str, typer.Option("--operator-namespace", metavar="NAMESPACE", help="The namespace in which muster is installed.")
]

Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="CHECK", help="Run only this check, such as CRD or webhook. May be repeated."),
]

CollectorUrls = Annotated[
    list[str] | None,
    typer.Option(
        "--collector-url",
        metavar="URL",
        help="Check, in a pod of the cluster, that this collector answers. May be repeated. [default: none]",
    ),
]


def doctor(
    *,
    namespace: Namespace = None,
    operator_namespace: OperatorNamespace = "muster-system",
    only: Only = None,
    collector_url: CollectorUrls = None,
) -> None:
    """Check a cluster, and say what to do: CRD, operator, webhook, collector, GPUs, EFA and your permissions.

    The command changes nothing. The exit code is 1 if a check fails. What your permissions hide is unknown, which is
    no failure.
    """
    from muster.cli.doctor.doctor import check_cluster, select_checks
    from muster.cli.jobs.job_reference import check_namespace

    check_namespace(operator_namespace)
    checks = select_checks(tuple(only or ()))
    raise typer.Exit(check_cluster(namespace, operator_namespace, checks, tuple(collector_url or ())))
