"""Add the volumes and mounts of a job's pod: SageMaker's folders, and the volumes in the job's spec."""

import posixpath

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.spec.data import Volume
from muster.api.spec.job import Job
from muster.core.problem import Problem
from muster.render.kubernetes import storage
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.opt_ml import CHECKPOINTS, RESULTS, ROOT, get_channel_folder
from muster.render.kubernetes.pod_patch import MUSTER, PodPatch, get_entries, get_trainer, wrap_in_trainer

_SCRATCH_FOLDERS = ("input", *RESULTS, "checkpoints")
"""The folders that a SageMaker script writes to. muster doesn't mount /opt/ml itself, which has the image's code."""

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a path inside the pod
_TEMPORARY = "/tmp"  # noqa: S108 - a path inside the pod


def make_volume_patches(job: Job, user_fields: Fields) -> tuple[PodPatch, ...]:
    """Return the volumes and mounts that muster adds to a pod. Raises `NotRenderable`.

    `user_fields` are the pod fields that the job sets.
    """
    requested_patches = (*_make_requested_patches(job), *storage.make_storage_folder_patches(job))
    user_paths = _get_mount_paths(user_fields)
    unique_user_paths = frozenset(user_paths)
    for patch in requested_patches:
        _check_unique_path(patch, unique_user_paths)
    mounted_paths = [*_get_all_mount_paths(requested_patches), *user_paths]
    return (
        *_make_scratch_patches(mounted_paths),
        *_make_shared_memory_patches(mounted_paths),
        *_make_temporary_folder_patches(user_fields, mounted_paths),
        *requested_patches,
    )


def _get_all_mount_paths(patches: tuple[PodPatch, ...]) -> list[str]:
    """Return the mount paths of these patches."""
    return [path for patch in patches for path in _get_mount_paths(patch.fields)]


def _get_mount_paths(pod: Fields) -> list[str]:
    mounts = get_entries(get_trainer(pod), "volumeMounts")
    return [posixpath.normpath(path) for mount in mounts if isinstance(path := mount.get("mountPath"), str)]


def _make_requested_patches(job: Job) -> tuple[PodPatch, ...]:
    spec = job.spec
    patches: list[PodPatch] = []
    for index, channel in enumerate(spec.inputs):
        if channel.volume is None:
            continue
        # The folder must exist: otherwise the kubelet would create an empty data set.
        volume = _make_volume_source(channel.volume, host_path_type="Directory")
        mounts: list[Fields] = [{"mountPath": get_channel_folder(channel.name), "readOnly": True}]
        patches.append(
            _make_mount_patch(
                f"muster-input-{index}", volume, mounts, f"spec.inputs[{index}]", "the ranks read the channel here"
            )
        )
    if spec.checkpoint is not None and spec.checkpoint.volume is not None:
        volume = _make_volume_source(spec.checkpoint.volume, host_path_type="DirectoryOrCreate")
        mounts = [{"mountPath": CHECKPOINTS}]
        patches.append(
            _make_mount_patch(
                "muster-checkpoint", volume, mounts, "spec.checkpoint.volume", "checkpoints outlive the pod"
            )
        )
    if spec.output is not None and spec.output.volume is not None:
        volume = _make_volume_source(spec.output.volume, host_path_type="DirectoryOrCreate")
        mounts = [{"mountPath": f"{ROOT}/{name}", "subPath": f"{job.metadata.name}/{name}"} for name in RESULTS]
        patches.append(
            _make_mount_patch("muster-output", volume, mounts, "spec.output.volume", "results outlive the pod")
        )
    return tuple(patches)


def _make_volume_source(volume: Volume, host_path_type: str) -> Fields:
    fields: Fields = volume.model_dump(mode="json", by_alias=True, exclude_none=True)
    if "hostPath" in fields:
        fields["hostPath"] = {**read_mapping(fields["hostPath"]), "type": host_path_type}
    return fields


def _make_scratch_patches(mounted_paths: list[str]) -> list[PodPatch]:
    reason = "SageMaker's folder; deleted with the pod"
    return [
        _make_mount_patch(
            "muster-ml", {"emptyDir": {}}, [{"mountPath": f"{ROOT}/{name}", "subPath": name}], MUSTER, reason
        )
        for name in _SCRATCH_FOLDERS
        if not _is_mounted(f"{ROOT}/{name}", mounted_paths)
    ]


def _make_shared_memory_patches(mounted_paths: list[str]) -> list[PodPatch]:
    if _is_mounted(_SHARED_MEMORY, mounted_paths):
        return []
    reason = "data loaders and NCCL need more shared memory than a container's 64 MiB"
    return [
        _make_mount_patch(
            "muster-shm", {"emptyDir": {"medium": "Memory"}}, [{"mountPath": _SHARED_MEMORY}], MUSTER, reason
        )
    ]


def _make_temporary_folder_patches(user_fields: Fields, mounted_paths: list[str]) -> list[PodPatch]:
    read_only = read_mapping(get_trainer(user_fields).get("securityContext")).get("readOnlyRootFilesystem") is True
    if not read_only or _is_mounted(_TEMPORARY, mounted_paths):
        return []
    reason = "the root file system is read-only, and Python's libraries need a folder for temporary files"
    return [_make_mount_patch("muster-tmp", {"emptyDir": {}}, [{"mountPath": _TEMPORARY}], MUSTER, reason)]


def _is_mounted(path: str, mounted_paths: list[str]) -> bool:
    """Whether the path or one of its parents is mounted."""
    return any(path == other or path.startswith(f"{other}/") or other == "/" for other in mounted_paths)


def _check_unique_path(patch: PodPatch, user_paths: frozenset[str]) -> None:
    duplicates = [path for path in _get_mount_paths(patch.fields) if path in user_paths]
    if duplicates:
        raise NotRenderable(
            Problem(
                "MountedTwice",
                f"{duplicates[0]} is mounted by {patch.source} and by a volumeMount of container trainer in "
                "spec.template or spec.nodeOverrides; remove one of the two mounts",
            )
        )


def _make_mount_patch(name: str, volume: Fields, mounts: list[Fields], source: str, reason: str) -> PodPatch:
    named_mounts: list[JSON] = [{"name": name, **mount} for mount in mounts]
    container = wrap_in_trainer({"volumeMounts": named_mounts})
    spec = read_mapping(container["spec"])
    return PodPatch({"spec": {**spec, "volumes": [{"name": name, **volume}]}}, source, reason)
