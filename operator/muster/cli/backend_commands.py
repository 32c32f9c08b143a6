"""The functions of a backend that `muster render`, `explain` and `validate` call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.api.document import Document
from muster.api.spec.job import Job
from muster.cli.explain.explanation import Explanation

if TYPE_CHECKING:
    from muster.api.config.operator import OperatorConfig


@dataclass(frozen=True)
class AwsOptions:
    """The options `--aws-region` and `--aws-account`; None if unset."""

    region: str | None = None
    account: str | None = None


@dataclass(frozen=True)
class BackendCommands:
    """The functions of a backend. The operator's configuration is None if it is unknown.

    `render` returns the output of `muster render`, and `explain` the rows of `muster explain` for one node; both raise
    `BadInput`. `check` raises `InvalidResource` for a job that the backend rejects. `find_problems` returns the reasons
    why the operator can't run a valid job yet, and `make_warnings` returns other warnings.
    """

    render: Callable[[Job, AwsOptions, OperatorConfig | None], str]
    explain: Callable[[Job, int, OperatorConfig | None], Sequence[Explanation]]
    check: Callable[[Job, Document, OperatorConfig | None], None]
    find_problems: Callable[[Job, OperatorConfig | None], tuple[str, ...]]
    make_warnings: Callable[[Job], tuple[str, ...]]
