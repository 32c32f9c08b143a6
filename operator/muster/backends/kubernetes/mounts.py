"""The folders that a pod of a job has: those that scripts expect, and those that the job names."""

import posixpath

from muster.api.data_spec import Volume
from muster.api.document import JSON
from muster.api.spec import Job
from muster.backends.kubernetes import storage
from muster.backends.kubernetes.merge import Fields
from muster.backends.kubernetes.not_renderable import NotRenderable
from muster.backends.kubernetes.opt_ml import CHECKPOINTS, RESULTS, ROOT, channel_folder
from muster.backends.kubernetes.pieces import MUSTER, Piece, entries, in_trainer, mapping, trainer_of
from muster.plan.facts import Problem

_SCRATCH = ("input", *RESULTS, "checkpoints")
"""The folders that a SageMaker script writes to. Never all of /opt/ml: images keep their code there."""

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a pod's own, not this machine's
_TEMPORARY = "/tmp"  # noqa: S108 - as above


def folders(job: Job, user: Fields) -> tuple[Piece, ...]:
    """The volumes and mounts of a pod that its owner wrote as `user`. Raises `NotRenderable`."""
    asked = (*_asked_for(job), *storage.folders(job))
    own = _mount_paths(user)
    once = frozenset(own)
    for piece in asked:
        _refuse_second(piece, once)
    taken = [*_asked_paths(asked), *own]
    return (*_scratch(taken), *_shared_memory(taken), *_temporary(user, taken), *asked)


def _asked_paths(pieces: tuple[Piece, ...]) -> list[str]:
    """Where these pieces mount something."""
    return [path for piece in pieces for path in _mount_paths(piece.fields)]


def _mount_paths(pod: Fields) -> list[str]:
    mounts = entries(trainer_of(pod), "volumeMounts")
    return [posixpath.normpath(path) for mount in mounts if isinstance(path := mount.get("mountPath"), str)]


def _asked_for(job: Job) -> tuple[Piece, ...]:
    spec = job.spec
    pieces: list[Piece] = []
    for index, channel in enumerate(spec.inputs):
        if channel.volume is None:
            continue
        # a folder that isn't there would be made by the container's runtime, and read as an empty data set
        volume = _source(channel.volume, missing="Directory")
        mounts: list[Fields] = [{"mountPath": channel_folder(channel.name), "readOnly": True}]
        pieces.append(
            _piece(f"muster-input-{index}", volume, mounts, f"spec.inputs[{index}]", "the ranks read it here")
        )
    if spec.checkpoint is not None and spec.checkpoint.volume is not None:
        volume = _source(spec.checkpoint.volume, missing="DirectoryOrCreate")
        mounts = [{"mountPath": CHECKPOINTS}]
        pieces.append(
            _piece("muster-checkpoint", volume, mounts, "spec.checkpoint.volume", "snapshots outlive the pod")
        )
    if spec.output is not None and spec.output.volume is not None:
        volume = _source(spec.output.volume, missing="DirectoryOrCreate")
        mounts = [{"mountPath": f"{ROOT}/{name}", "subPath": f"{job.metadata.name}/{name}"} for name in RESULTS]
        pieces.append(_piece("muster-output", volume, mounts, "spec.output.volume", "what the job leaves is kept"))
    return tuple(pieces)


def _source(volume: Volume, missing: str) -> Fields:
    fields: Fields = volume.model_dump(mode="json", by_alias=True, exclude_none=True)
    if "hostPath" in fields:
        fields["hostPath"] = {**mapping(fields["hostPath"]), "type": missing}
    return fields


def _scratch(taken: list[str]) -> list[Piece]:
    why = "SageMaker's folder; made for the pod, gone with it"
    return [
        _piece("muster-ml", {"emptyDir": {}}, [{"mountPath": f"{ROOT}/{name}", "subPath": name}], MUSTER, why)
        for name in _SCRATCH
        if not _covered(f"{ROOT}/{name}", taken)
    ]


def _shared_memory(taken: list[str]) -> list[Piece]:
    if _covered(_SHARED_MEMORY, taken):
        return []
    why = "data loaders and NCCL need more shared memory than a container's 64 MiB"
    return [_piece("muster-shm", {"emptyDir": {"medium": "Memory"}}, [{"mountPath": _SHARED_MEMORY}], MUSTER, why)]


def _temporary(user: Fields, taken: list[str]) -> list[Piece]:
    read_only = mapping(trainer_of(user).get("securityContext")).get("readOnlyRootFilesystem") is True
    if not read_only or _covered(_TEMPORARY, taken):
        return []
    why = "the root file system is read-only, and Python's libraries need a place for temporary files"
    return [_piece("muster-tmp", {"emptyDir": {}}, [{"mountPath": _TEMPORARY}], MUSTER, why)]


def _covered(path: str, taken: list[str]) -> bool:
    """Whether something is mounted there or around it: who mounts /opt/ml means all that is in it."""
    return any(path == other or path.startswith(f"{other}/") or other == "/" for other in taken)


def _refuse_second(piece: Piece, own: frozenset[str]) -> None:
    both = [path for path in _mount_paths(piece.fields) if path in own]
    if both:
        raise NotRenderable(
            Problem(
                "MountedTwice",
                f"{both[0]} is mounted by {piece.source} and by a volumeMount of container trainer in spec.template or "
                "spec.nodeOverrides; remove one of them",
            )
        )


def _piece(name: str, volume: Fields, mounts: list[Fields], source: str, why: str) -> Piece:
    placed: list[JSON] = [{"name": name, **mount} for mount in mounts]
    container = in_trainer({"volumeMounts": placed})
    spec = mapping(container["spec"])
    return Piece({"spec": {**spec, "volumes": [{"name": name, **volume}]}}, source, why)
