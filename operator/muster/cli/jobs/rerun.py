"""`muster rerun`: send edited code to a running job, and start its ranks again with it."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from muster.api.document import JSON
from muster.api.json_fields import mapping, string
from muster.api.names import API_VERSION, JOB_UID_LABEL, KIND, SOURCE_ANNOTATION
from muster.api.plurals import pluralize
from muster.api.timestamps import format_milliseconds
from muster.cli.board.observed_job import ObservedJob, read_observed_job
from muster.cli.errors import BadInput
from muster.cli.jobs.cluster import ClusterJob, JobReference
from muster.cli.jobs.requests import Change, Waiting, make_restart, request_change
from muster.cli.jobs.source_files import PackedSource, check_script, pack_source
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAPS, Object
from muster.objects.kubernetes.names import JOB_LABEL, SOURCE_KEY, SOURCE_LABEL, source_name
from muster.objects.kubernetes.pods import owner_uid

MAX_NOTES = 20
"""The maximum number of files that are left out and named."""


def rerun_job(wanted: JobReference, waiting: Waiting, source: Path | None) -> int:
    """Start the job's ranks again with the code in `source`; None: with the job's own. Return the exit code."""
    packed = None if source is None else pack_source(source)
    now = format_milliseconds(time.time())

    async def prepare(target: ClusterJob, resource: Object, note: Callable[[str], None]) -> Change:
        change = make_rerun(resource, now, packed)
        if source is not None and packed is not None:
            command = mapping(resource.get("spec")).get("command")
            check_script(source, packed, [word for word in _items(command) if isinstance(word, str)])
            for sentence in packed.left_out[:MAX_NOTES]:
                note(sentence)
            if len(packed.left_out) > MAX_NOTES:
                note(f"{pluralize(len(packed.left_out) - MAX_NOTES, 'more file')} left out")
            await _create_config_map(target, make_config_map(resource, packed))
        return change

    async def tidy_up(target: ClusterJob, resource: Object) -> None:
        await _delete_others(target, string(mapping(resource.get("metadata")).get("uid")), _name(resource, packed))

    return request_change(wanted, waiting, prepare, tidy_up)


def make_rerun(resource: Object, value: str, packed: PackedSource | None) -> Change:
    """Return the change that requests a restart with edited code; None: with the job's own. Raises `BadInput`."""
    observed = read_observed_job(resource)
    job_name = observed.name
    if mapping(resource.get("spec")).get("backend") == "SageMaker":
        raise BadInput(
            f"{KIND} {job_name} runs on SageMaker, where a training job keeps its code: `muster suspend {job_name}`, "
            f"change spec.source, then `muster resume {job_name}`"
        )
    name, restart = _name(resource, packed), make_restart(resource, value)
    annotations = mapping(mapping(restart.fields["metadata"]).get("annotations"))
    fields: dict[str, JSON] = {"metadata": {"annotations": {**annotations, SOURCE_ANNOTATION: name}}}

    def is_done(job: ObservedJob) -> bool:
        current = None if job.status.source is None else job.status.source.config_map
        return restart.is_done(job) and current == name

    earlier_remark = _find_remark(observed)

    def find_refusal(job: ObservedJob) -> str | None:
        remark = _find_remark(job)
        refusal = f"{SOURCE_ANNOTATION}: ConfigMap {name} can't be used"
        return remark if refusal in remark and remark != earlier_remark else None

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
    metadata = mapping(resource.get("metadata"))
    job_name, uid = string(metadata.get("name")), string(metadata.get("uid"))
    owner: dict[str, JSON] = {"apiVersion": API_VERSION, "kind": KIND, "name": job_name, "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": source_name(job_name, packed.sha256),
            "labels": {JOB_LABEL: job_name, JOB_UID_LABEL: uid, SOURCE_LABEL: "rerun"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": False}],
        },
        "immutable": True,
        "binaryData": {SOURCE_KEY: base64.b64encode(packed.archive).decode("ascii")},
    }


def _name(resource: Object, packed: PackedSource | None) -> str | None:
    job_name = string(mapping(resource.get("metadata")).get("name"))
    return None if packed is None else source_name(job_name, packed.sha256)


def _find_remark(observed: ObservedJob) -> str:
    accepted = observed.status.condition("Accepted")
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


async def _delete_others(target: ClusterJob, job_uid: str, name: str | None) -> None:
    """Delete the job's ConfigMaps of earlier code. If the user may not, Kubernetes deletes them with the job."""
    try:
        listing = await target.client.list(
            CONFIG_MAPS, target.namespace, labels=f"{JOB_UID_LABEL}={job_uid},{SOURCE_LABEL}=rerun"
        )
        for stored in listing.items:
            metadata = mapping(stored.get("metadata"))
            if metadata.get("name") != name and owner_uid(stored) == job_uid:
                await target.client.delete(
                    CONFIG_MAPS, target.namespace, string(metadata.get("name")), uid=string(metadata.get("uid"))
                )
    except ApiError:
        return
