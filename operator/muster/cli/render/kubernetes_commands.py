"""Render, explain and validate Kubernetes jobs.

Imports that only one function needs are inside it, so that each command starts fast.
"""
# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.cli.backend_commands import AwsOptions, BackendCommands
from muster.cli.config_file import apply_config
from muster.cli.errors import BadInput
from muster.cli.explain.explanation import Explanation
from muster.cli.render.placeholders import PLACEHOLDERS, simulate_apply
from muster.render.kubernetes.devices import resolve_procs_per_node
from muster.render.kubernetes.not_renderable import IMAGE_NOT_SET, NotRenderable
from muster.render.kubernetes.render import render_pod
from muster.render.kubernetes.user_patches import group_equal_nodes

if TYPE_CHECKING:
    from muster.api.config.operator import OperatorConfig


def _render(job: Job, options: AwsOptions, config: OperatorConfig | None) -> str:
    from muster.cli.render.render import render_text
    from muster.render.agent_archive import build_agent_archive

    if options != AwsOptions():
        raise BadInput("--aws-region and --aws-account work only with backend: SageMaker")
    return render_text(job, build_agent_archive(), config)


def _explain(job: Job, node: int, config: OperatorConfig | None) -> Sequence[Explanation]:
    try:
        return _explain_even_without_image(apply_config(job, config), node)
    except NotRenderable as error:
        raise BadInput(f"a cluster can't run this job yet: {error}") from None
    except InvalidResource as invalid:
        raise BadInput(f"a cluster can't run this job yet: {'; '.join(map(str, invalid.problems))}") from None


def _explain_even_without_image(job: Job, node: int) -> Sequence[Explanation]:
    """Explain the job, even if it has no image, because muster's settings do not depend on the image."""
    from muster.cli.explain.explanations import explain_node

    try:
        return explain_node(job, node)
    except NotRenderable as error:
        if error.problem.reason != IMAGE_NOT_SET:
            raise
        sys.stderr.write(f"a cluster can't run this job yet: {error}\n")
        return explain_node(job.model_copy(update={"spec": job.spec.model_copy(update={"image": "IMAGE"})}), node)


def _find_problems(job: Job, config: OperatorConfig | None) -> tuple[str, ...]:
    """Return the reasons why muster can't render the job's pods. The job may still run on this machine."""
    try:
        applied_job = resolve_procs_per_node(simulate_apply(apply_config(job, config)))
        for nodes in group_equal_nodes(applied_job):
            render_pod(applied_job, nodes[0], 0, PLACEHOLDERS)
    except NotRenderable as error:
        return (str(error),)
    except InvalidResource as invalid:
        return tuple(map(str, invalid.problems))
    return ()


KUBERNETES_COMMANDS = BackendCommands(
    render=_render,
    explain=_explain,
    check=lambda _job, _document, _config: None,
    find_problems=_find_problems,
    make_warnings=lambda _: (),
)
