"""Read the job that `muster run --on cluster` creates, and check it before it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from muster.api.document import Document
from muster.api.field_problems import InvalidResource
from muster.api.json_fields import read_mapping, read_string
from muster.api.plurals import pluralize
from muster.api.spec.job import Job
from muster.cli.backends import get_commands
from muster.cli.cluster_run.options import ClusterRunOptions
from muster.cli.errors import BadInput
from muster.cli.job_file import JobFile, expand_job
from muster.cli.jobs.source_files import PackedSource, check_script, list_skipped_files, pack_source
from muster.cli.options import check_ranks
from muster.core.world import compute_world_size
from muster.objects.kubernetes.kinds import Object


@dataclass(frozen=True)
class Manifest:
    """The job's resource as the user wrote it, its parsed form, and the packed code; None for the code of the spec.

    `notes` are messages for the user.
    """

    resource: Object
    job: Job
    packed_source: PackedSource | None = None
    notes: tuple[str, ...] = ()


def build_manifest(options: ClusterRunOptions, job_file: JobFile) -> Manifest:
    """Check the job, with its template from a file, and read its code. Raises `BadInput`."""
    job, expanded = expand_job(job_file)
    return complete_manifest(options, job, expanded.document)


def complete_manifest(options: ClusterRunOptions, job: Job, document: Document) -> Manifest:
    """Check the job and read its code. The API server will get `document`. Raises `BadInput`."""
    commands = get_commands(job)
    try:
        commands.check(job, document, None)
    except InvalidResource as error:
        raise BadInput(str(error)) from None
    if job.spec.procs_per_node != "Auto":
        check_ranks(options.ranks, compute_world_size(job))
    resource = read_mapping(document.value)
    packed_source = None if options.source is None else _pack(job, options.source)
    return Manifest(
        {name: value for name, value in resource.items() if name != "status"},
        job,
        packed_source,
        (*commands.make_warnings(job), *_make_source_notes(job, packed_source)),
    )


def choose_namespace(resource: Object, namespace: str | None) -> str | None:
    """Return the namespace of the option or of the resource; None for the kubeconfig's. Raises `BadInput`."""
    own = read_string(read_mapping(resource.get("metadata")).get("namespace")) or None
    if own is not None and namespace is not None and own != namespace:
        raise BadInput(
            f"--namespace {namespace}: the file's metadata.namespace is {own}; leave out one of them, or use the same"
        )
    return namespace or own


def _pack(job: Job, source: Path) -> PackedSource:
    if not job.spec.traits.has_collector:
        raise BadInput(
            f"--source: a job of backend {job.spec.backend} gets its code only from spec.source (docs/source.md)"
        )
    packed_source = pack_source(source)
    check_script(source, packed_source, job.spec.command)
    return packed_source


def _make_source_notes(job: Job, packed_source: PackedSource | None) -> list[str]:
    if packed_source is None:
        return []
    replaced = ["the ranks run the code of --source instead of spec.source"] if job.spec.source is not None else []
    size = f"{len(packed_source.archive) / 1024:.0f} KiB"
    packed = f"packed {pluralize(len(packed_source.paths), 'file')} ({size})"
    return [*list_skipped_files(packed_source), *replaced, packed]
