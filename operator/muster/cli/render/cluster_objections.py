"""What a cluster's operator would refuse of a valid job: what shows only when its pods are made. Pure."""

from __future__ import annotations

from muster.api.config.operator import OperatorConfig
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.cli.config_file import with_config
from muster.cli.render.render import SETTING, as_applied
from muster.render.kubernetes.devices import with_procs
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.owner_patches import kinds
from muster.render.kubernetes.render import pod


def cluster_objections(job: Job, config: OperatorConfig | None) -> tuple[str, ...]:
    """Why no pods can be made of the job as it is, a sentence each; `config` is the operator's (None: unknown).

    It may run on this machine all the same.
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
