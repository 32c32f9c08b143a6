"""Find the folders of a local run's channels and checkpoints: the job's volumes, or the user's options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from muster.api.spec.job import Job
from muster.backends.local.layout import RunLayout, link_folder


class MissingFolder(Exception):
    """A folder doesn't exist, or the job has no such input; the message says what to do."""


@dataclass(frozen=True)
class Folders:
    """The channels' folders by channel name, and the folder for checkpoints (None: a folder of the run).

    `downloads` are the channels that were downloaded from S3, with a folder for each node.
    """

    channels: Mapping[str, Path]
    checkpoints: Path | None
    downloads: Mapping[str, Sequence[Path]] = field(default_factory=dict)


def find_folders(job: Job, overrides: Mapping[str, Path], checkpoint: Path | None) -> Folders:
    """Find every folder that the job reads. `overrides` are the user's options, by channel. Raises `MissingFolder`."""
    names = [channel.name for channel in job.spec.inputs]
    for name in overrides:
        if name not in names:
            raise MissingFolder(
                f"--input {name}=...: the job has no input {name!r}; it has {', '.join(names) or 'none'}"
            )
    channels = {}
    for index, channel in enumerate(job.spec.inputs):
        if channel.name in overrides:
            channels[channel.name] = _check_folder_exists(
                overrides[channel.name], f"--input {channel.name}", "give a folder that exists"
            )
            continue
        if channel.volume is None or channel.volume.host_path is None:
            raise MissingFolder(
                f"spec.inputs[{index}].volume: this volume exists only in a cluster;"
                f" read from a folder with --input {channel.name}=DIR"
            )
        field = f"spec.inputs[{index}].volume.hostPath.path"
        hint = f"create it, or read from another folder with --input {channel.name}=DIR"
        channels[channel.name] = _check_folder_exists(Path(channel.volume.host_path.path), field, hint)
    return Folders(channels, checkpoint if checkpoint is not None else _get_checkpoint_folder(job))


def link_channels(layout: RunLayout, nodes: int, folders: Folders) -> None:
    """Link each channel's folder below every node's root. Raises `OSError`."""
    for node in range(nodes):
        for name, folder in folders.channels.items():
            link_folder(layout.get_node(node).channels / name, folder)
        for name, node_folders in folders.downloads.items():
            link_folder(layout.get_node(node).channels / name, node_folders[node])


def _get_checkpoint_folder(job: Job) -> Path | None:
    checkpoint = job.spec.checkpoint
    if checkpoint is None or checkpoint.volume is None or checkpoint.volume.host_path is None:
        return None
    # use a cluster's path only if it exists; never create it on this machine
    field = "spec.checkpoint.volume.hostPath.path"
    return _check_folder_exists(
        Path(checkpoint.volume.host_path.path), field, "create it, or use another folder with --checkpoint DIR"
    )


def _check_folder_exists(folder: Path, field: str, hint: str) -> Path:
    if folder.is_dir():
        return folder
    result = "is not a folder" if folder.exists() else "does not exist"
    raise MissingFolder(f"{field}: {folder} {result}; {hint}")
