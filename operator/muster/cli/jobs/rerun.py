"""`muster rerun`: send edited code to a running job, and start its ranks again with it."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.names import API_VERSION, JOB_UID_LABEL, KIND, SOURCE_ANNOTATION
from muster.api.plurals import pluralize
from muster.api.timestamps import format_timestamp_milliseconds
from muster.cli.board.observed_job import ObservedJob, read_observed_job
from muster.cli.errors import BadInput
from muster.cli.jobs.cluster import ClusterJob, JobReference
from muster.cli.jobs.requests import Change, Waiting, make_restart, request_change
from muster.cli.jobs.source_files import PackedSource, check_script, pack_source
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAPS, JOBS, Object
from muster.objects.kubernetes.names import JOB_LABEL, SOURCE_KEY, SOURCE_LABEL, build_source_name
from muster.objects.kubernetes.pods import read_owner_uid

MAX_NOTES = 20
"""The maximum number of files that are left out and named."""


def rerun_job(wanted: JobReference, waiting: Waiting, source: Path | None) -> int:
    """Start the job's ranks again with the code in `source`; None: with the job's own. Return the exit code."""
    packed = None if source is None else pack_source(source)
    now = format_timestamp_milliseconds(time.time())
    earlier: list[Object] = []

    async def prepare(target: ClusterJob, resource: Object, note: Callable[[str], None]) -> Change:
        change = make_rerun(resource, now, packed)
        if source is not None and packed is not None:
            command = read_mapping(resource.get("spec")).get("command")
            check_script(source, packed, [word for word in _items(command) if isinstance(word, str)])
            for sentence in packed.left_out[:MAX_NOTES]:
                note(sentence)
            if len(packed.left_out) > MAX_NOTES:
                note(f"{pluralize(len(packed.left_out) - MAX_NOTES, 'more file')} left out")
        # List them now: another rerun, which begins later, creates its ConfigMap before the job names it.
        earlier.extend(await _list_config_maps(target, resource))
        if packed is not None:
            await _create_config_map(target, make_config_map(resource, packed))
        return change

    async def tidy_up(target: ClusterJob, _: Object) -> None:
        await delete_unused(target, earlier)

    return request_change(wanted, waiting, prepare, tidy_up)


def make_rerun(resource: Object, value: str, packed: PackedSource | None) -> Change:
    """Return the change that requests a restart with edited code; None: with the job's own. Raises `BadInput`."""
    observed = read_observed_job(resource)
    job_name = observed.name
    if read_mapping(resource.get("spec")).get("backend") == "SageMaker":
        raise BadInput(
            f"{KIND} {job_name} runs on SageMaker, where a training job keeps its code: `muster suspend {job_name}`, "
            f"change spec.source, then `muster resume {job_name}`"
        )
    name, restart = _name(resource, packed), make_restart(resource, value)
    annotations = read_mapping(read_mapping(restart.fields["metadata"]).get("annotations"))
    fields: dict[str, JSON] = {"metadata": {"annotations": {**annotations, SOURCE_ANNOTATION: name}}}

    def is_done(job: ObservedJob) -> bool:
        current = None if job.status.source is None else job.status.source.config_map
        return restart.is_done(job) and current == name

    earlier_remark = _find_remark(observed)

    def find_refusal(job: ObservedJob) -> str | None:
        remark = _find_remark(job)
        refusal = f"{SOURCE_ANNOTATION}: ConfigMap {name} can't be used"
        request = job.status.restart_request
        is_new = remark != earlier_remark or (request is not None and request.refused == value)
        return remark if refusal in remark and is_new else None

    code = "its own code" if packed is None else "the edited code"
    return replace(
        restart,
        fields=fields,
        requested=f"will run {code}",
        done=f"runs {code}",
        is_done=is_done,
        find_refusal=find_refusal,
    )


def make_config_map(resource: Object, packed: PackedSource) -> Object:
    """Return the ConfigMap with the packed code. The job owns it, so Kubernetes deletes it with the job."""
    metadata = read_mapping(resource.get("metadata"))
    job_name, uid = read_string(metadata.get("name")), read_string(metadata.get("uid"))
    owner: dict[str, JSON] = {"apiVersion": API_VERSION, "kind": KIND, "name": job_name, "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": build_source_name(job_name, packed.sha256),
            "labels": {JOB_LABEL: job_name, JOB_UID_LABEL: uid, SOURCE_LABEL: "rerun"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": False}],
        },
        "immutable": True,
        "binaryData": {SOURCE_KEY: base64.b64encode(packed.archive).decode("ascii")},
    }


def _name(resource: Object, packed: PackedSource | None) -> str | None:
    job_name = read_string(read_mapping(resource.get("metadata")).get("name"))
    return None if packed is None else build_source_name(job_name, packed.sha256)


def _find_remark(observed: ObservedJob) -> str:
    accepted = observed.status.find_condition("Accepted")
    return "" if accepted is None else accepted.message


def _items(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


async def _create_config_map(target: ClusterJob, body: Object) -> None:
    """Create the ConfigMap, unless the same code was sent before. Raises `ApiError`."""
    try:
        await target.client.create(CONFIG_MAPS, target.namespace, body)
    except ApiError as error:
        # The operator checks the content of the existing one.
        if not error.already_exists:
            raise


async def _list_config_maps(target: ClusterJob, resource: Object) -> list[Object]:
    """List the ConfigMaps of the job's code. If the user may not, Kubernetes deletes them with the job."""
    job_uid = read_string(read_mapping(resource.get("metadata")).get("uid"))
    labels = f"{JOB_UID_LABEL}={job_uid},{SOURCE_LABEL}=rerun"
    try:
        listing = await target.client.list(CONFIG_MAPS, target.namespace, labels=labels)
    except ApiError:
        return []
    return [stored for stored in listing.items if read_owner_uid(stored) == job_uid]


async def delete_unused(target: ClusterJob, config_maps: Sequence[Object]) -> None:
    """Delete those of the ConfigMaps that the job does not use now: another rerun may have begun meanwhile."""
    try:
        used = find_used_names(await target.client.get(JOBS, target.namespace, target.name))
        for stored in config_maps:
            metadata = read_mapping(stored.get("metadata"))
            name, uid = read_string(metadata.get("name")), read_string(metadata.get("uid"))
            if name not in used:
                await target.client.delete(CONFIG_MAPS, target.namespace, name, uid=uid)
    except ApiError:
        return


def find_used_names(resource: Object) -> frozenset[str]:
    """Return the ConfigMaps with the code that the job's ranks run, and that its next attempt will run."""
    annotations = read_mapping(read_mapping(resource.get("metadata")).get("annotations"))
    source = read_observed_job(resource).status.source
    running = "" if source is None else source.config_map
    return frozenset((read_string(annotations.get(SOURCE_ANNOTATION)), running))
