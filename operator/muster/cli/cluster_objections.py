"""Why a cluster's operator would refuse a valid job: problems that appear only when muster renders its pods. Pure."""

from __future__ import annotations

from muster.api.field_problems import InvalidResource
from muster.api.operator_config import OperatorConfig
from muster.api.spec import Job
from muster.backends.kubernetes.devices import with_procs
from muster.backends.kubernetes.not_renderable import NotRenderable
from muster.backends.kubernetes.owner_patches import kinds
from muster.backends.kubernetes.render import pod
from muster.cli.config_file import with_config
from muster.cli.render import SETTING, as_applied


def cluster_objections(job: Job, config: OperatorConfig | None) -> tuple[str, ...]:
    """Explain why muster can't render the job's pods, one sentence each; `config` is the operator's (None: unknown).

    The job may still run on this machine.
    """
    if job.spec.backend != "Kubernetes":
        return ()
    try:
        applied = with_procs(as_applied(with_config(job, config)))
        for nodes in kinds(applied):
            pod(applied, nodes[0], 0, SETTING)
    except NotRenderable as error:
        return (str(error),)
    except InvalidResource as invalid:
        return tuple(map(str, invalid.problems))
    return ()
