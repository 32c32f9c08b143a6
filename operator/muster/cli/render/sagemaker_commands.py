"""Jobs on SageMaker, as the commands show and check them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from muster.api.config.operator import OperatorConfig
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.cli.backend_commands import BackendCommands
from muster.cli.explain.explanation import Explanation
from muster.cli.explain.training_explanations import training_explanations
from muster.cli.problem import BadInput
from muster.cli.render.training_request import checked_request, made_request, request_text, some_region
from muster.render.sagemaker.notes import training_notes


def _explain(job: Job, _: int, config: OperatorConfig | None) -> Sequence[Explanation]:
    """One table, about the job's request."""
    try:
        result = training_explanations(job, made_request(job, some_region(job, config)))
    except InvalidResource as invalid:
        raise BadInput(f"not for SageMaker yet: {'; '.join(map(str, invalid.problems))}") from None
    sys.stderr.writelines(f"{note}\n" for note in training_notes(job))
    return result


SAGEMAKER = BackendCommands(
    render=lambda job, options, config: request_text(job, options.region, options.account, config),
    explain=_explain,
    check=checked_request,
    objections=lambda _job, _config: (),
    notes=training_notes,
)
