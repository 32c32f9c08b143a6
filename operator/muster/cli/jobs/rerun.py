"""`muster rerun`: send edited code to a running job, and start its ranks again with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.names import JOB_UID_LABEL, KIND, SOURCE_ANNOTATION
from muster.api.timestamps import format_timestamp_milliseconds
from muster.cli.board.observed_job import ObservedJob, read_observed_job
from muster.cli.errors import BadInput
from muster.cli.jobs.cluster import ClusterJob
from muster.cli.jobs.job_reference import JobReference
from muster.cli.jobs.requests import RequestedChange, WaitOptions, make_restart, request_change
from muster.cli.jobs.source_config_map import create_config_map
from muster.cli.jobs.source_files import PackedSource, check_script, list_skipped_files, pack_source
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAPS, JOBS, Object
from muster.objects.kubernetes.names import SOURCE_LABEL, build_source_name
from muster.objects.kubernetes.pods import read_owner_uid


def rerun_job(reference: JobReference, wait_options: WaitOptions, source: Path | None) -> int:
    """Start the job's ranks again, with the code in `source` or else the job's own. Return the exit code."""
    packed_source = None if source is None else pack_source(source)
    now = format_timestamp_milliseconds(time.time())
    earlier_config_maps: list[Object] = []

    async def prepare(target: ClusterJob, resource: Object, note: Callable[[str], None]) -> RequestedChange:
        change = make_rerun(resource, now, packed_source)
        if source is not None and packed_source is not None:
            command = read_mapping(resource.get("spec")).get("command")
            check_script(source, packed_source, [word for word in _read_items(command) if isinstance(word, str)])
            for sentence in list_skipped_files(packed_source):
                note(sentence)
        # List the ConfigMaps before creating one, so that `delete_unused` spares those of reruns that begin later.
        earlier_config_maps.extend(await _list_config_maps(target, resource))
        if packed_source is not None:
            await create_config_map(target, resource, packed_source)
        return change

    async def clean_up(target: ClusterJob, _: Object) -> None:
        await delete_unused(target, earlier_config_maps)

    return request_change(reference, wait_options, prepare, clean_up)


def make_rerun(resource: Object, annotation_value: str, packed_source: PackedSource | None) -> RequestedChange:
    """Return the change that requests a restart with edited code, or with the job's own if `packed_source` is None.

    Raises `BadInput`.
    """
    observed_job = read_observed_job(resource)
    job_name = observed_job.name
    if read_mapping(resource.get("spec")).get("backend") == "SageMaker":
        raise BadInput(
            f"{KIND} {job_name} runs on SageMaker, where a training job keeps its code: `muster suspend {job_name}`, "
            f"change spec.source, then `muster resume {job_name}`"
        )
    name, restart = _make_config_map_name(resource, packed_source), make_restart(resource, annotation_value)
    annotations = read_mapping(read_mapping(restart.fields["metadata"]).get("annotations"))
    fields: dict[str, JSON] = {"metadata": {"annotations": {**annotations, SOURCE_ANNOTATION: name}}}

    def is_done(job: ObservedJob) -> bool:
        current = None if job.status.source is None else job.status.source.config_map
        return restart.is_done(job) and current == name

    earlier_remark = _get_accepted_message(observed_job)

    def find_refusal(job: ObservedJob) -> str | None:
        remark = _get_accepted_message(job)
        refusal = f"{SOURCE_ANNOTATION}: ConfigMap {name} can't be used"
        request = job.status.restart_request
        is_new = remark != earlier_remark or (request is not None and request.refused_value == annotation_value)
        return remark if refusal in remark and is_new else None

    code = "its own code" if packed_source is None else "the edited code"
    return replace(
        restart,
        fields=fields,
        requested_text=f"will run {code}",
        done_text=f"runs {code}",
        is_done=is_done,
        find_refusal=find_refusal,
    )


def _make_config_map_name(resource: Object, packed_source: PackedSource | None) -> str | None:
    job_name = read_string(read_mapping(resource.get("metadata")).get("name"))
    return None if packed_source is None else build_source_name(job_name, packed_source.sha256)


def _get_accepted_message(observed_job: ObservedJob) -> str:
    accepted = observed_job.status.find_condition("Accepted")
    return "" if accepted is None else accepted.message


def _read_items(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


async def _list_config_maps(target: ClusterJob, resource: Object) -> list[Object]:
    """List the ConfigMaps of the job's code, or none if the user may not. Kubernetes deletes them with the job."""
    job_uid = read_string(read_mapping(resource.get("metadata")).get("uid"))
    labels = f"{JOB_UID_LABEL}={job_uid},{SOURCE_LABEL}=rerun"
    try:
        listing = await target.client.list(CONFIG_MAPS, target.namespace, labels=labels)
    except ApiError:
        return []
    return [config_map for config_map in listing.items if read_owner_uid(config_map) == job_uid]


async def delete_unused(target: ClusterJob, config_maps: Sequence[Object]) -> None:
    """Delete the ConfigMaps that the job does not use now. Another rerun may have begun meanwhile."""
    try:
        used = find_used_names(await target.client.get(JOBS, target.namespace, target.name))
        for config_map in config_maps:
            metadata = read_mapping(config_map.get("metadata"))
            name, uid = read_string(metadata.get("name")), read_string(metadata.get("uid"))
            if name not in used:
                await target.client.delete(CONFIG_MAPS, target.namespace, name, uid=uid)
    except ApiError:
        return


def find_used_names(resource: Object) -> frozenset[str]:
    """Return the ConfigMaps with the code of the job's current attempt and of its next attempt."""
    annotations = read_mapping(read_mapping(resource.get("metadata")).get("annotations"))
    source = read_observed_job(resource).status.source
    running = "" if source is None else source.config_map
    return frozenset((read_string(annotations.get(SOURCE_ANNOTATION)), running))
