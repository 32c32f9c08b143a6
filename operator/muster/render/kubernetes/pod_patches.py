"""Collect the patches of a node's pod: muster's defaults, the owner's settings, and fixed settings."""

from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.core.facts import Problem
from muster.render.kubernetes import storage
from muster.render.kubernetes.agent_container import agent_patches
from muster.render.kubernetes.frame import default_patches, identity_patches
from muster.render.kubernetes.gang import queue_patches
from muster.render.kubernetes.hardware import device_patches, efa_patches, instance_type_patches, toleration_patches
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.mounts import folder_patches
from muster.render.kubernetes.not_renderable import IMAGE_NOT_SET, NotRenderable
from muster.render.kubernetes.own_python import python_container_patches
from muster.render.kubernetes.owner_patches import owner_patches
from muster.render.kubernetes.placement import machine_patches, placement_patches
from muster.render.kubernetes.pod_patch import PodPatch, merge_patches, trainer_of
from muster.render.kubernetes.setting import Setting


@dataclass(frozen=True)
class PodPatches:
    """Patches in order of precedence: `owners` overrides `default_patches`, and `fixed` overrides both."""

    defaults: tuple[PodPatch, ...]
    owners: tuple[PodPatch, ...]
    fixed: tuple[PodPatch, ...]

    @property
    def all(self) -> tuple[PodPatch, ...]:
        return (*self.defaults, *self.owners, *self.fixed)


def pod_patches(job: Job, node: int, replacement: int, setting: Setting) -> PodPatches:
    """Return the patches of a node's pod. Raises `NotRenderable` and `InvalidResource`."""
    owners = owner_patches(job, node)
    owner_fields = merge_patches(owners)
    if not trainer_of(owner_fields).get("image"):
        raise NotRenderable(
            Problem(
                IMAGE_NOT_SET,
                "no image is set for the ranks' container: set spec.image, for example "
                "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime",
            )
        )
    without_containers = (
        *default_patches(owner_fields),
        *folder_patches(job, owner_fields),
        *_machine_patches(job, owners, owner_fields),
    )
    return PodPatches(
        defaults=(
            *without_containers,
            *_init_containers(job, node, merge_patches((*without_containers, *owners)), setting),
        ),
        owners=owners,
        fixed=(
            *identity_patches(job, node, replacement, setting),
            *agent_patches(job, node, replacement, owner_fields),
            *storage.storage_volume_patches(job),
        ),
    )


def _init_containers(job: Job, node: int, pod: Fields, setting: Setting) -> tuple[PodPatch, ...]:
    """Return muster's init containers, which run before the owner's."""
    return (*python_container_patches(job, pod, setting), *storage.transfer_containers(job, node, pod, setting))


def _machine_patches(job: Job, owners: tuple[PodPatch, ...], owner_fields: Fields) -> tuple[PodPatch, ...]:
    """Return the patches for the machine and its devices."""
    hardware = (*device_patches(job, owner_fields), *efa_patches(job, owner_fields))
    pod = merge_patches((*hardware, *owners))
    return (
        *machine_patches(job),
        *instance_type_patches(job, owner_fields),
        *hardware,
        *toleration_patches(pod),
        *placement_patches(job, pod),
        *queue_patches(job),
    )
