"""The folders that a pod of a job has: those that scripts expect, and those that the job names."""

import posixpath

from muster.api.document import JSON
from muster.api.json_fields import mapping
from muster.api.spec.data import Volume
from muster.api.spec.job import Job
from muster.core.facts import Problem
from muster.render.kubernetes import storage
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.opt_ml import CHECKPOINTS, RESULTS, ROOT, channel_folder
from muster.render.kubernetes.pod_patch import MUSTER, PodPatch, entries, in_trainer, trainer_of

_SCRATCH = ("input", *RESULTS, "checkpoints")
"""The folders that a SageMaker script writes to. Never all of /opt/ml: images keep their code there."""

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a pod's own, not this machine's
_TEMPORARY = "/tmp"  # noqa: S108 - as above


def folders(job: Job, user: Fields) -> tuple[PodPatch, ...]:
    """The volumes and mounts of a pod that its owner wrote as `user`. Raises `NotRenderable`."""
    asked = (*_asked_for(job), *storage.folders(job))
    own = _mount_paths(user)
    once = frozenset(own)
    for patch in asked:
        _refuse_second(patch, once)
    taken = [*_asked_paths(asked), *own]
    return (*_scratch(taken), *_shared_memory(taken), *_temporary(user, taken), *asked)


def _asked_paths(patches: tuple[PodPatch, ...]) -> list[str]:
    """Where these patches mount something."""
    return [path for patch in patches for path in _mount_paths(patch.fields)]


def _mount_paths(pod: Fields) -> list[str]:
    mounts = entries(trainer_of(pod), "volumeMounts")
    return [posixpath.normpath(path) for mount in mounts if isinstance(path := mount.get("mountPath"), str)]


def _asked_for(job: Job) -> tuple[PodPatch, ...]:
    spec = job.spec
    patches: list[PodPatch] = []
    for index, channel in enumerate(spec.inputs):
        if channel.volume is None:
            continue
        # a folder that isn't there would be made by the container's runtime, and read as an empty data set
        volume = _source(channel.volume, missing="Directory")
        mounts: list[Fields] = [{"mountPath": channel_folder(channel.name), "readOnly": True}]
        patches.append(
            _patch(f"muster-input-{index}", volume, mounts, f"spec.inputs[{index}]", "the ranks read it here")
        )
    if spec.checkpoint is not None and spec.checkpoint.volume is not None:
        volume = _source(spec.checkpoint.volume, missing="DirectoryOrCreate")
        mounts = [{"mountPath": CHECKPOINTS}]
        patches.append(
            _patch("muster-checkpoint", volume, mounts, "spec.checkpoint.volume", "snapshots outlive the pod")
        )
    if spec.output is not None and spec.output.volume is not None:
        volume = _source(spec.output.volume, missing="DirectoryOrCreate")
        mounts = [{"mountPath": f"{ROOT}/{name}", "subPath": f"{job.metadata.name}/{name}"} for name in RESULTS]
        patches.append(_patch("muster-output", volume, mounts, "spec.output.volume", "what the job leaves is kept"))
    return tuple(patches)


def _source(volume: Volume, missing: str) -> Fields:
    fields: Fields = volume.model_dump(mode="json", by_alias=True, exclude_none=True)
    if "hostPath" in fields:
        fields["hostPath"] = {**mapping(fields["hostPath"]), "type": missing}
    return fields


def _scratch(taken: list[str]) -> list[PodPatch]:
    why = "SageMaker's folder; made for the pod, gone with it"
    return [
        _patch("muster-ml", {"emptyDir": {}}, [{"mountPath": f"{ROOT}/{name}", "subPath": name}], MUSTER, why)
        for name in _SCRATCH
        if not _covered(f"{ROOT}/{name}", taken)
    ]


def _shared_memory(taken: list[str]) -> list[PodPatch]:
    if _covered(_SHARED_MEMORY, taken):
        return []
    why = "data loaders and NCCL need more shared memory than a container's 64 MiB"
    return [_patch("muster-shm", {"emptyDir": {"medium": "Memory"}}, [{"mountPath": _SHARED_MEMORY}], MUSTER, why)]


def _temporary(user: Fields, taken: list[str]) -> list[PodPatch]:
    read_only = mapping(trainer_of(user).get("securityContext")).get("readOnlyRootFilesystem") is True
    if not read_only or _covered(_TEMPORARY, taken):
        return []
    why = "the root file system is read-only, and Python's libraries need a place for temporary files"
    return [_patch("muster-tmp", {"emptyDir": {}}, [{"mountPath": _TEMPORARY}], MUSTER, why)]


def _covered(path: str, taken: list[str]) -> bool:
    """Whether something is mounted there or around it: who mounts /opt/ml means all that is in it."""
    return any(path == other or path.startswith(f"{other}/") or other == "/" for other in taken)


def _refuse_second(patch: PodPatch, own: frozenset[str]) -> None:
    both = [path for path in _mount_paths(patch.fields) if path in own]
    if both:
        raise NotRenderable(
            Problem(
                "MountedTwice",
                f"{both[0]} is mounted by {patch.source} and by a volumeMount of container trainer in spec.template or "
                "spec.nodeOverrides; remove one of them",
            )
        )


def _patch(name: str, volume: Fields, mounts: list[Fields], source: str, why: str) -> PodPatch:
    placed: list[JSON] = [{"name": name, **mount} for mount in mounts]
    container = in_trainer({"volumeMounts": placed})
    spec = mapping(container["spec"])
    return PodPatch({"spec": {**spec, "volumes": [{"name": name, **volume}]}}, source, why)
