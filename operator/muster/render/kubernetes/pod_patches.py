"""The patches of a node's pod: muster's defaults, what the job's owner wrote over them, and what has to be as it is."""

from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.core.facts import Problem
from muster.render.kubernetes import storage
from muster.render.kubernetes.agent_container import agent
from muster.render.kubernetes.frame import defaults, identity
from muster.render.kubernetes.gang import membership
from muster.render.kubernetes.hardware import devices, fabric, tolerations, type_variable
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.mounts import folders
from muster.render.kubernetes.not_renderable import IMAGE_NOT_SET, NotRenderable
from muster.render.kubernetes.own_python import brought
from muster.render.kubernetes.owner_patches import owner_patches
from muster.render.kubernetes.placement import machines, neighbourhood
from muster.render.kubernetes.pod_patch import PodPatch, stacked, trainer_of
from muster.render.kubernetes.setting import Setting


@dataclass(frozen=True)
class PodPatches:
    """In the order in which they count: `owners` is merged over `defaults`, `fixed` over both."""

    defaults: tuple[PodPatch, ...]
    owners: tuple[PodPatch, ...]
    fixed: tuple[PodPatch, ...]

    @property
    def all(self) -> tuple[PodPatch, ...]:
        return (*self.defaults, *self.owners, *self.fixed)


def pod_patches(job: Job, node: int, replacement: int, setting: Setting) -> PodPatches:
    """Raises `NotRenderable` for a job that can't become pods, and as `with_procs` does where that was not asked."""
    owners = owner_patches(job, node)
    user = stacked(owners)
    if not trainer_of(user).get("image"):
        raise NotRenderable(
            Problem(
                IMAGE_NOT_SET,
                "no image is set for the ranks' container: set spec.image, for example "
                "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime",
            )
        )
    usual = (*defaults(user), *folders(job, user), *_placed(job, owners, user))
    return PodPatches(
        defaults=(*usual, *_brought(job, node, stacked((*usual, *owners)), setting)),
        owners=owners,
        fixed=(*identity(job, node, replacement, setting), *agent(job, node, replacement, user), *storage.fixed(job)),
    )


def _brought(job: Job, node: int, pod: Fields, setting: Setting) -> tuple[PodPatch, ...]:
    """The init containers that muster puts before the owner's."""
    return (*brought(job, pod, setting), *storage.carriers(job, node, pod, setting))


def _placed(job: Job, owners: tuple[PodPatch, ...], user: Fields) -> tuple[PodPatch, ...]:
    """What machine the pod gets, and what of it."""
    hardware = (*devices(job, user), *fabric(job, user))
    pod = stacked((*hardware, *owners))
    return (
        *machines(job),
        *type_variable(job, user),
        *hardware,
        *tolerations(pod),
        *neighbourhood(job, pod),
        *membership(job),
    )
