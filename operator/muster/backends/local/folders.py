"""Where a run's channels and snapshots lie on this machine: the job's volumes, or what the user said instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from muster.api.spec.job import Job
from muster.backends.local.layout import RunLayout, link_folder


class MissingFolder(Exception):
    """A folder isn't there, or is for no input of the job; the message names the field or flag, and what to do."""


@dataclass(frozen=True)
class Folders:
    """The channels' folders by name, and the one for snapshots (None: the run's own).

    `fetched` has the channels that came from S3, with a folder for each node.
    """

    channels: Mapping[str, Path]
    checkpoints: Path | None
    fetched: Mapping[str, Sequence[Path]] = field(default_factory=dict)


def find_folders(job: Job, overrides: Mapping[str, Path], checkpoint: Path | None) -> Folders:
    """Find every folder that the job reads. `overrides` are the user's own, by channel. Raises `MissingFolder`."""
    names = [channel.name for channel in job.spec.inputs]
    for name in overrides:
        if name not in names:
            raise MissingFolder(
                f"--input {name}=...: the job has no input {name!r}; it has {', '.join(names) or 'none'}"
            )
    channels = {}
    for index, channel in enumerate(job.spec.inputs):
        if channel.name in overrides:
            channels[channel.name] = _existing(
                overrides[channel.name], f"--input {channel.name}", "give a folder that exists"
            )
            continue
        if channel.volume is None or channel.volume.host_path is None:
            raise MissingFolder(
                f"spec.inputs[{index}].volume: it is a cluster's, and not on this machine;"
                f" read from a folder with --input {channel.name}=DIR"
            )
        field = f"spec.inputs[{index}].volume.hostPath.path"
        hint = f"make it, or read from another one with --input {channel.name}=DIR"
        channels[channel.name] = _existing(Path(channel.volume.host_path.path), field, hint)
    return Folders(channels, checkpoint if checkpoint is not None else _checkpoints_of(job))


def link_channels(layout: RunLayout, nodes: int, folders: Folders) -> None:
    """Make each channel's folder appear under every node's root. Raises `OSError`."""
    for node in range(nodes):
        for name, folder in folders.channels.items():
            link_folder(layout.node(node).channels / name, folder)
        for name, shares in folders.fetched.items():
            link_folder(layout.node(node).channels / name, shares[node])


def _checkpoints_of(job: Job) -> Path | None:
    checkpoint = job.spec.checkpoint
    if checkpoint is None or checkpoint.volume is None or checkpoint.volume.host_path is None:
        return None
    # a cluster's path must not appear on a laptop by accident: it is used when it is there, never made
    field = "spec.checkpoint.volume.hostPath.path"
    return _existing(
        Path(checkpoint.volume.host_path.path), field, "make it, or keep snapshots in another one with --checkpoint DIR"
    )


def _existing(folder: Path, field: str, hint: str) -> Path:
    if folder.is_dir():
        return folder
    result = "is not a folder" if folder.exists() else "does not exist"
    raise MissingFolder(f"{field}: {folder} {result}; {hint}")
