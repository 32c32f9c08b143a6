"""What a backend's jobs are to the commands that show and check them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muster.api.config.operator import OperatorConfig
from muster.api.document import Document
from muster.api.spec.job import Job
from muster.cli.explain.explanation import Explanation


@dataclass(frozen=True)
class AwsOptions:
    """`--aws-region` and `--aws-account`; None: not given."""

    region: str | None = None
    account: str | None = None


@dataclass(frozen=True)
class BackendCommands:
    """One backend's part of the commands. The operator's configuration is None where it is unknown.

    `render` is `muster render`'s text. `explain` is `muster explain`'s table, of one node where nodes differ. Both
    raise `BadInput`. `check` raises `InvalidResource` for a job that is not valid there, `objections` are why a valid
    one can't be run by a cluster's operator yet, `notes` what else people should know of it.
    """

    render: Callable[[Job, AwsOptions, OperatorConfig | None], str]
    explain: Callable[[Job, int, OperatorConfig | None], Sequence[Explanation]]
    check: Callable[[Job, Document, OperatorConfig | None], None]
    objections: Callable[[Job, OperatorConfig | None], tuple[str, ...]]
    notes: Callable[[Job], tuple[str, ...]]
