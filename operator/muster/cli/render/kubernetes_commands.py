"""Jobs of pods, as the commands show and check them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from muster.api.config.operator import OperatorConfig
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.cli.backend_commands import AwsOptions, BackendCommands
from muster.cli.config_file import with_config
from muster.cli.explain.explanation import Explanation
from muster.cli.explain.explanations import explanations
from muster.cli.problem import BadInput
from muster.cli.render.render import SETTING, as_applied, render_text
from muster.render.agent_archive import agent_archive
from muster.render.kubernetes.devices import with_procs
from muster.render.kubernetes.not_renderable import IMAGE_NOT_SET, NotRenderable
from muster.render.kubernetes.owner_patches import kinds
from muster.render.kubernetes.render import pod


def _render(job: Job, options: AwsOptions, config: OperatorConfig | None) -> str:
    if options != AwsOptions():
        raise BadInput("--aws-region and --aws-account work only with backend: SageMaker")
    return render_text(job, agent_archive(), config)


def _explain(job: Job, node: int, config: OperatorConfig | None) -> Sequence[Explanation]:
    try:
        return _explained(with_config(job, config), node)
    except NotRenderable as error:
        raise BadInput(f"not for a cluster yet: {error}") from None
    except InvalidResource as invalid:
        raise BadInput(f"not for a cluster yet: {'; '.join(map(str, invalid.problems))}") from None


def _explained(job: Job, node: int) -> Sequence[Explanation]:
    """Explain the job, even without an image: muster adds the same settings for every image."""
    try:
        return explanations(job, node)
    except NotRenderable as error:
        if error.problem.reason != IMAGE_NOT_SET:
            raise
        sys.stderr.write(f"not for a cluster yet: {error}\n")
        return explanations(job.model_copy(update={"spec": job.spec.model_copy(update={"image": "IMAGE"})}), node)


def _objections(job: Job, config: OperatorConfig | None) -> tuple[str, ...]:
    """Explain why muster can't render the job's pods, one sentence each. The job may still run on this machine."""
    try:
        applied = with_procs(as_applied(with_config(job, config)))
        for nodes in kinds(applied):
            pod(applied, nodes[0], 0, SETTING)
    except NotRenderable as error:
        return (str(error),)
    except InvalidResource as invalid:
        return tuple(map(str, invalid.problems))
    return ()


KUBERNETES = BackendCommands(
    render=_render,
    explain=_explain,
    check=lambda _job, _document, _config: None,
    objections=_objections,
    notes=lambda _: (),
)
