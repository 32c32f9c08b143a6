"""Jobs on SageMaker, as the commands show and check them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from muster.api.field_problems import InvalidResource
from muster.api.operator_config import OperatorConfig
from muster.api.spec import Job
from muster.backends.sagemaker.notes import training_notes
from muster.cli.backend_commands import BackendCommands
from muster.cli.explanation import Explanation
from muster.cli.problem import BadInput
from muster.cli.training_explanations import training_explanations
from muster.cli.training_request import checked_request, made_request, request_text, some_region


def _explain(job: Job, _: int, config: OperatorConfig | None) -> Sequence[Explanation]:
    """One table, of the job's request."""
    try:
        found = training_explanations(job, made_request(job, some_region(job, config)))
    except InvalidResource as invalid:
        raise BadInput(f"not for SageMaker yet: {'; '.join(map(str, invalid.problems))}") from None
    sys.stderr.writelines(f"{note}\n" for note in training_notes(job))
    return found


SAGEMAKER = BackendCommands(
    render=lambda job, options, config: request_text(job, options.region, options.account, config),
    explain=_explain,
    check=checked_request,
    objections=lambda _job, _config: (),
    notes=training_notes,
)
