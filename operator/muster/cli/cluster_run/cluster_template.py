"""Let the API server merge a template that only the cluster has. The user needs no right to read it."""

from __future__ import annotations

from dataclasses import replace

from muster.api.document import JSON, Document
from muster.api.field_problems import InvalidResource
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.api.validation.validate import validate
from muster.cli.errors import BadInput
from muster.cli.job_file import JobFile, find_templates
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.kinds import JOBS
from muster.render.training_template.expand import find_reference, read_reference

_CHECKED_NAME_PREFIX = "template-check-"
"""A dry run under the job's own name has no answer if there is a job of this name."""


def lacks_template(job_file: JobFile) -> bool:
    """Whether the job names a template that no file has. Raises `BadInput` for an invalid reference."""
    reference = find_reference(job_file.document)
    try:
        return reference is not None and not find_templates(read_reference(reference), job_file.templates)
    except InvalidResource as error:
        raise BadInput(str(error)) from None


async def merge_on_cluster(client: Client, namespace: str, document: Document) -> Job:
    """Return the valid job as the cluster's webhook makes it complete. Raises `BadInput` and `ApiError`."""
    value = read_mapping(document.value)
    metadata = {name: item for name, item in read_mapping(value.get("metadata")).items() if name != "name"}
    checked: dict[str, JSON] = {**value, "metadata": {**metadata, "generateName": _CHECKED_NAME_PREFIX}}
    response = await client.dry_run_create(JOBS, namespace, checked)
    merged: JSON = {**value, "spec": response.get("spec")}
    try:
        return validate(replace(document, value=merged, lines={}))
    except InvalidResource as error:
        raise BadInput(str(error)) from None
