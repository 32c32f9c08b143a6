"""Collect the patches of a node's pod: muster's defaults, the user's settings, and fixed settings."""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.core.problem import Problem
from muster.render.kubernetes import storage
from muster.render.kubernetes.agent_container import make_agent_patches
from muster.render.kubernetes.base_patches import make_default_patches, make_identity_patches
from muster.render.kubernetes.gang import make_queue_patches
from muster.render.kubernetes.hardware import (
    make_device_patches,
    make_efa_patches,
    make_instance_type_patches,
    make_toleration_patches,
)
from muster.render.kubernetes.kueue import make_role_patches
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.mounts import make_volume_patches
from muster.render.kubernetes.not_renderable import IMAGE_NOT_SET, NotRenderable
from muster.render.kubernetes.own_python import make_python_container_patches
from muster.render.kubernetes.placement import make_avoidance_patches, make_node_pool_patches, make_placement_patches
from muster.render.kubernetes.pod_patch import PodPatch, get_trainer, merge_patches
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.kubernetes.user_patches import collect_user_patches


@dataclass(frozen=True)
class PodPatches:
    """Patches in order of precedence: `user_patches` override `defaults`, and `fixed_patches` overrides both."""

    defaults: tuple[PodPatch, ...]
    user_patches: tuple[PodPatch, ...]
    fixed_patches: tuple[PodPatch, ...]

    @property
    def all(self) -> tuple[PodPatch, ...]:
        return (*self.defaults, *self.user_patches, *self.fixed_patches)


def make_pod_patches(
    job: Job,
    node: int,
    replacement: int,
    pod_settings: PodSettings,
    avoided_nodes: Sequence[str] = (),
    *,
    group_number: int = 0,
) -> PodPatches:
    """Return the patches of a node's pod, which avoids some Kubernetes nodes. `group_number` is its group's in Kueue.

    Raises `NotRenderable` and `InvalidResource`.
    """
    user_patches = collect_user_patches(job, node)
    user_fields = merge_patches(user_patches)
    _check_image(user_fields)
    without_containers = (
        *make_default_patches(user_fields),
        *make_volume_patches(job, user_fields),
        *_make_machine_patches(job, user_patches, user_fields, group_number),
    )
    pod = merge_patches((*without_containers, *user_patches))
    return PodPatches(
        defaults=(
            *without_containers,
            *make_avoidance_patches(avoided_nodes),
            *make_role_patches(job, pod),
            *_make_init_container_patches(job, node, pod, pod_settings),
        ),
        user_patches=user_patches,
        fixed_patches=(
            *make_identity_patches(job, node, replacement, pod_settings),
            *make_agent_patches(job, node, replacement, user_fields, pod_settings),
            *storage.make_storage_volume_patches(job),
        ),
    )


def _check_image(user_fields: Fields) -> None:
    if not get_trainer(user_fields).get("image"):
        raise NotRenderable(
            Problem(
                IMAGE_NOT_SET,
                "no image is set for the ranks' container: set spec.image, for example "
                "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime",
            )
        )


def _make_init_container_patches(job: Job, node: int, pod: Fields, pod_settings: PodSettings) -> tuple[PodPatch, ...]:
    """Return muster's init containers, which run before the user's."""
    return (
        *make_python_container_patches(job, pod, pod_settings),
        *storage.make_transfer_containers(job, node, pod, pod_settings),
    )


def _make_machine_patches(
    job: Job, user_patches: tuple[PodPatch, ...], user_fields: Fields, group_number: int
) -> tuple[PodPatch, ...]:
    """Return the patches for the machine and its devices."""
    hardware = (*make_device_patches(job, user_fields), *make_efa_patches(job, user_fields))
    pod = merge_patches((*hardware, *user_patches))
    return (
        *make_node_pool_patches(job),
        *make_instance_type_patches(job, user_fields),
        *hardware,
        *make_toleration_patches(pod),
        *make_placement_patches(job, pod),
        *make_queue_patches(job, group_number),
    )
