"""Render, explain and validate SageMaker jobs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.cli.backend_commands import BackendCommands
from muster.cli.errors import BadInput
from muster.cli.explain.explanation import Explanation
from muster.cli.explain.training_explanations import explain_training_request
from muster.cli.render.training_request import build_request, check_request, choose_region_or_default, format_request
from muster.render.sagemaker.job_warnings import make_training_warnings

if TYPE_CHECKING:
    from muster.api.config.operator import OperatorConfig


def _explain(job: Job, _: int, config: OperatorConfig | None) -> Sequence[Explanation]:
    """Explain the job's request."""
    try:
        result = explain_training_request(job, build_request(job, choose_region_or_default(job, config)))
    except InvalidResource as invalid:
        raise BadInput(f"SageMaker can't run this job yet: {'; '.join(map(str, invalid.problems))}") from None
    sys.stderr.writelines(f"{warning}\n" for warning in make_training_warnings(job))
    return result


SAGEMAKER_COMMANDS = BackendCommands(
    render=lambda job, options, config: format_request(job, options.region, options.account, config),
    explain=_explain,
    check=check_request,
    find_problems=lambda _job, _config: (),
    make_warnings=make_training_warnings,
)
