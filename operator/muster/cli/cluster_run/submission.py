"""Create a job on a cluster, with the code of a folder.

The job is created suspended, and its code after it, because the ConfigMap with the code needs the job's uid. The change
that resumes the job also names the code. So no rank can start without the code, whenever the command is interrupted.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.names import KIND, SHORT_NAME, SOURCE_ANNOTATION
from muster.cli.board.observed_job import ObservedJob, read_observed_job
from muster.cli.cluster_run.manifest import Manifest
from muster.cli.cluster_run.options import ClusterRunOptions
from muster.cli.display import Display
from muster.cli.errors import BadInput
from muster.cli.jobs.api_problems import explain_request_error
from muster.cli.jobs.cluster import ClusterJob
from muster.cli.jobs.source_config_map import create_config_map
from muster.cli.jobs.source_files import PackedSource
from muster.cli.jobs.watched_job import JobDeleted, get_job, watch_job
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAPS, JOBS, Object


async def submit(target: ClusterJob, manifest: Manifest, options: ClusterRunOptions, display: Display) -> Object:
    """Create the job, and return its resource. Raises `BadInput`, and `ApiError` if it can't be created."""
    await _check(target, manifest, options)
    if options.replaces:
        await _delete_earlier(target, display)
    if manifest.packed_source is None:
        return await _create(target, manifest.resource, options)
    await _check_source_rights(target)
    return await _create_with_source(target, manifest, manifest.packed_source, options)


async def _check(target: ClusterJob, manifest: Manifest, options: ClusterRunOptions) -> None:
    """Let the API server check the job, and refuse a name that is taken. Raises `BadInput`."""
    try:
        await target.client.dry_run_create(JOBS, target.namespace, manifest.resource)
    except ApiError as error:
        if not error.already_exists:
            raise
        if not options.replaces:
            raise BadInput(describe_existing(await get_job(target), target, options)) from None


def describe_existing(job: ObservedJob, target: ClusterJob, options: ClusterRunOptions) -> str:
    """Say that the job exists, and which commands help."""
    state = f"{KIND} {target} exists ({job.status.phase}: {job.status.message})"
    again = "--replace deletes it and creates it again"
    if job.is_over:
        return f"{state}; {again}"
    if job.status.is_suspended:
        return f"{state}; `muster resume {job.name}` continues it, {again}"
    if options.source is not None and job.status.was_ever_started:
        return (
            f"{state}; `muster rerun {job.name} --source {options.source}` starts its ranks again in the same pods "
            f"with the edited code, which takes seconds; {again}"
        )
    return f"{state}; `muster ranks {job.name}` shows it, `muster logs -f {job.name}` its output; {again}"


async def _delete_earlier(target: ClusterJob, display: Display) -> None:
    """Delete the job of this name, if there is one, and wait until it is deleted. Raises `ApiError`."""
    try:
        job = await get_job(target)
        display.show_note(f"deleting {target} ({job.status.phase})")
        await target.client.delete(JOBS, target.namespace, target.name, uid=job.uid)
        async with aclosing(watch_job(target)) as jobs:
            async for observed_job in jobs:
                if observed_job.uid != job.uid:
                    return
    except JobDeleted:
        return
    except ApiError as error:
        if not error.is_not_found:
            raise


async def _create(target: ClusterJob, resource: Object, options: ClusterRunOptions) -> Object:
    """Create the job. Raises `ApiError`, and `BadInput` if another client has created one of this name meanwhile."""
    try:
        return await target.client.create(JOBS, target.namespace, resource)
    except ApiError as error:
        if not error.already_exists:
            raise
        job = await get_job(target)
        raise BadInput(describe_existing(job, target, replace(options, source=None))) from None


async def _check_source_rights(target: ClusterJob) -> None:
    """Check with a small ConfigMap whether the user may create one. Raises `BadInput`."""
    body: dict[str, JSON] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{target.name}-source-check"},
    }
    try:
        await target.client.dry_run_create(CONFIG_MAPS, target.namespace, body)
    except ApiError as error:
        if not error.already_exists:
            raise BadInput(f"--source needs a ConfigMap for the code: {explain_request_error(error)}") from None


async def _create_with_source(
    target: ClusterJob, manifest: Manifest, packed_source: PackedSource, options: ClusterRunOptions
) -> Object:
    """Create the job suspended, then its code, and then resume it. Delete it if that fails. Raises `ApiError`."""
    spec = read_mapping(manifest.resource.get("spec"))
    created = await _create(target, {**manifest.resource, "spec": {**spec, "suspend": True}}, options)
    uid = read_string(read_mapping(created.get("metadata")).get("uid"))
    try:
        name = await create_config_map(target, created, packed_source)
        metadata: dict[str, JSON] = {"uid": uid, "annotations": {SOURCE_ANNOTATION: name}}
        fields: dict[str, JSON] = {"metadata": metadata, "spec": {"suspend": spec.get("suspend")}}
        return await target.client.merge(JOBS, target.namespace, target.name, fields)
    except BaseException:
        # Also after Ctrl-C: a job without its code must not be left.
        await target.client.delete(JOBS, target.namespace, target.name, uid=uid)
        raise


def is_suspended_by_spec(resource: Object) -> bool:
    """Whether the user's file suspends the job."""
    return read_mapping(resource.get("spec")).get("suspend") is True


def describe_created(resource: Object, target: ClusterJob) -> str:
    """Say that the job was created, and which commands show or delete it."""
    name = read_observed_job(resource).name
    if is_suspended_by_spec(resource):
        return f"{target} is created and suspended, as spec.suspend says: `muster resume {name}` starts it"
    return (
        f"{target} is created: `muster ranks {name}` shows it, `muster logs -f {name}` its output, "
        f"`muster wait {name}` waits for its end, and `kubectl delete {SHORT_NAME} {name}` deletes it"
    )
