"""Collect the patches of a node's pod: muster's defaults, the user's settings, and fixed settings."""

from collections.abc import Sequence
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
from muster.render.kubernetes.placement import avoidance_patches, machine_patches, placement_patches
from muster.render.kubernetes.pod_patch import PodPatch, merge_patches, trainer_of
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.kubernetes.user_patches import collect_user_patches


@dataclass(frozen=True)
class PodPatches:
    """Patches in order of precedence: `user_patches` override `defaults`, and `fixed` overrides both."""

    defaults: tuple[PodPatch, ...]
    user_patches: tuple[PodPatch, ...]
    fixed: tuple[PodPatch, ...]

    @property
    def all(self) -> tuple[PodPatch, ...]:
        return (*self.defaults, *self.user_patches, *self.fixed)


def pod_patches(
    job: Job, node: int, replacement: int, pod_settings: PodSettings, avoided_nodes: Sequence[str] = ()
) -> PodPatches:
    """Return the patches of a node's pod, which avoids some Kubernetes nodes.

    Raises `NotRenderable` and `InvalidResource`.
    """
    user_patches = collect_user_patches(job, node)
    user_fields = merge_patches(user_patches)
    if not trainer_of(user_fields).get("image"):
        raise NotRenderable(
            Problem(
                IMAGE_NOT_SET,
                "no image is set for the ranks' container: set spec.image, for example "
                "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime",
            )
        )
    without_containers = (
        *default_patches(user_fields),
        *folder_patches(job, user_fields),
        *_machine_patches(job, user_patches, user_fields),
    )
    return PodPatches(
        defaults=(
            *without_containers,
            *avoidance_patches(avoided_nodes),
            *_init_containers(job, node, merge_patches((*without_containers, *user_patches)), pod_settings),
        ),
        user_patches=user_patches,
        fixed=(
            *identity_patches(job, node, replacement, pod_settings),
            *agent_patches(job, node, replacement, user_fields),
            *storage.storage_volume_patches(job),
        ),
    )


def _init_containers(job: Job, node: int, pod: Fields, pod_settings: PodSettings) -> tuple[PodPatch, ...]:
    """Return muster's init containers, which run before the user's."""
    return (
        *python_container_patches(job, pod, pod_settings),
        *storage.transfer_containers(job, node, pod, pod_settings),
    )


def _machine_patches(job: Job, user_patches: tuple[PodPatch, ...], user_fields: Fields) -> tuple[PodPatch, ...]:
    """Return the patches for the machine and its devices."""
    hardware = (*device_patches(job, user_fields), *efa_patches(job, user_fields))
    pod = merge_patches((*hardware, *user_patches))
    return (
        *machine_patches(job),
        *instance_type_patches(job, user_fields),
        *hardware,
        *toleration_patches(pod),
        *placement_patches(job, pod),
        *queue_patches(job),
    )
