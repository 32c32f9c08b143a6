"""Add the volumes and mounts of a job's pod: SageMaker's folders, and the volumes in the job's spec."""

import posixpath

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.spec.data import Volume
from muster.api.spec.job import Job
from muster.core.facts import Problem
from muster.render.kubernetes import storage
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.opt_ml import CHECKPOINTS, RESULTS, ROOT, channel_folder
from muster.render.kubernetes.pod_patch import MUSTER, PodPatch, entries, in_trainer, trainer_of

_SCRATCH = ("input", *RESULTS, "checkpoints")
"""The folders that a SageMaker script writes to. /opt/ml itself is never mounted: it contains the image's code."""

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a path inside the pod
_TEMPORARY = "/tmp"  # noqa: S108 - a path inside the pod


def folder_patches(job: Job, user_fields: Fields) -> tuple[PodPatch, ...]:
    """Return the volumes and mounts of a pod with the user's fields `user_fields`. Raises `NotRenderable`."""
    requested = (*_requested_patches(job), *storage.storage_folder_patches(job))
    user_paths = _mount_paths(user_fields)
    unique_owner_paths = frozenset(user_paths)
    for patch in requested:
        _refuse_duplicate(patch, unique_owner_paths)
    mounted = [*_requested_paths(requested), *user_paths]
    return (*_scratch(mounted), *_shared_memory(mounted), *_temporary(user_fields, mounted), *requested)


def _requested_paths(patches: tuple[PodPatch, ...]) -> list[str]:
    """Return the mount paths of these patches."""
    return [path for patch in patches for path in _mount_paths(patch.fields)]


def _mount_paths(pod: Fields) -> list[str]:
    mounts = entries(trainer_of(pod), "volumeMounts")
    return [posixpath.normpath(path) for mount in mounts if isinstance(path := mount.get("mountPath"), str)]


def _requested_patches(job: Job) -> tuple[PodPatch, ...]:
    spec = job.spec
    patches: list[PodPatch] = []
    for index, channel in enumerate(spec.inputs):
        if channel.volume is None:
            continue
        # The folder must exist: otherwise the kubelet would create an empty data set.
        volume = _source(channel.volume, missing="Directory")
        mounts: list[Fields] = [{"mountPath": channel_folder(channel.name), "readOnly": True}]
        patches.append(
            _patch(f"muster-input-{index}", volume, mounts, f"spec.inputs[{index}]", "the ranks read the channel here")
        )
    if spec.checkpoint is not None and spec.checkpoint.volume is not None:
        volume = _source(spec.checkpoint.volume, missing="DirectoryOrCreate")
        mounts = [{"mountPath": CHECKPOINTS}]
        patches.append(
            _patch("muster-checkpoint", volume, mounts, "spec.checkpoint.volume", "checkpoints outlive the pod")
        )
    if spec.output is not None and spec.output.volume is not None:
        volume = _source(spec.output.volume, missing="DirectoryOrCreate")
        mounts = [{"mountPath": f"{ROOT}/{name}", "subPath": f"{job.metadata.name}/{name}"} for name in RESULTS]
        patches.append(_patch("muster-output", volume, mounts, "spec.output.volume", "results outlive the pod"))
    return tuple(patches)


def _source(volume: Volume, missing: str) -> Fields:
    fields: Fields = volume.model_dump(mode="json", by_alias=True, exclude_none=True)
    if "hostPath" in fields:
        fields["hostPath"] = {**read_mapping(fields["hostPath"]), "type": missing}
    return fields


def _scratch(mounted: list[str]) -> list[PodPatch]:
    reason = "SageMaker's folder; deleted with the pod"
    return [
        _patch("muster-ml", {"emptyDir": {}}, [{"mountPath": f"{ROOT}/{name}", "subPath": name}], MUSTER, reason)
        for name in _SCRATCH
        if not _is_mounted(f"{ROOT}/{name}", mounted)
    ]


def _shared_memory(mounted: list[str]) -> list[PodPatch]:
    if _is_mounted(_SHARED_MEMORY, mounted):
        return []
    reason = "data loaders and NCCL need more shared memory than a container's 64 MiB"
    return [_patch("muster-shm", {"emptyDir": {"medium": "Memory"}}, [{"mountPath": _SHARED_MEMORY}], MUSTER, reason)]


def _temporary(user_fields: Fields, mounted: list[str]) -> list[PodPatch]:
    read_only = read_mapping(trainer_of(user_fields).get("securityContext")).get("readOnlyRootFilesystem") is True
    if not read_only or _is_mounted(_TEMPORARY, mounted):
        return []
    reason = "the root file system is read-only, and Python's libraries need a folder for temporary files"
    return [_patch("muster-tmp", {"emptyDir": {}}, [{"mountPath": _TEMPORARY}], MUSTER, reason)]


def _is_mounted(path: str, mounted: list[str]) -> bool:
    """Whether the path or one of its parents is mounted."""
    return any(path == other or path.startswith(f"{other}/") or other == "/" for other in mounted)


def _refuse_duplicate(patch: PodPatch, user_paths: frozenset[str]) -> None:
    duplicates = [path for path in _mount_paths(patch.fields) if path in user_paths]
    if duplicates:
        raise NotRenderable(
            Problem(
                "MountedTwice",
                f"{duplicates[0]} is mounted by {patch.source} and by a volumeMount of container trainer in "
                "spec.template or spec.nodeOverrides; remove one of them",
            )
        )


def _patch(name: str, volume: Fields, mounts: list[Fields], source: str, reason: str) -> PodPatch:
    named_mounts: list[JSON] = [{"name": name, **mount} for mount in mounts]
    container = in_trainer({"volumeMounts": named_mounts})
    spec = read_mapping(container["spec"])
    return PodPatch({"spec": {**spec, "volumes": [{"name": name, **volume}]}}, source, reason)
