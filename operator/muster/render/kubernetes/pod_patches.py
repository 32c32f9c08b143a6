"""The patches of a node's pod: muster's defaults, then the owner's settings, then fixed settings."""

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
from muster.render.kubernetes.placement import machines, relative_placement
from muster.render.kubernetes.pod_patch import PodPatch, merge_patches, trainer_of
from muster.render.kubernetes.setting import Setting


@dataclass(frozen=True)
class PodPatches:
    """Patches in order of precedence: `owners` overrides `defaults`, and `fixed` overrides both."""

    defaults: tuple[PodPatch, ...]
    owners: tuple[PodPatch, ...]
    fixed: tuple[PodPatch, ...]

    @property
    def all(self) -> tuple[PodPatch, ...]:
        return (*self.defaults, *self.owners, *self.fixed)


def pod_patches(job: Job, node: int, replacement: int, setting: Setting) -> PodPatches:
    """Return the patches. Raises `NotRenderable` if the job can't become pods, and like `with_procs`."""
    owners = owner_patches(job, node)
    user = merge_patches(owners)
    if not trainer_of(user).get("image"):
        raise NotRenderable(
            Problem(
                IMAGE_NOT_SET,
                "no image is set for the ranks' container: set spec.image, for example "
                "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime",
            )
        )
    without_containers = (*defaults(user), *folders(job, user), *_machine_patches(job, owners, user))
    return PodPatches(
        defaults=(
            *without_containers,
            *_init_containers(job, node, merge_patches((*without_containers, *owners)), setting),
        ),
        owners=owners,
        fixed=(*identity(job, node, replacement, setting), *agent(job, node, replacement, user), *storage.fixed(job)),
    )


def _init_containers(job: Job, node: int, pod: Fields, setting: Setting) -> tuple[PodPatch, ...]:
    """muster's init containers, which come before the owner's."""
    return (*brought(job, pod, setting), *storage.transfer_containers(job, node, pod, setting))


def _machine_patches(job: Job, owners: tuple[PodPatch, ...], user: Fields) -> tuple[PodPatch, ...]:
    """The patches for machine and devices."""
    hardware = (*devices(job, user), *fabric(job, user))
    pod = merge_patches((*hardware, *owners))
    return (
        *machines(job),
        *type_variable(job, user),
        *hardware,
        *tolerations(pod),
        *relative_placement(job, pod),
        *membership(job),
    )
