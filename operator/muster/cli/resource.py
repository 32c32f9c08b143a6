"""Format a job and its status as YAML or JSON."""

from __future__ import annotations

import json

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.api.yaml.serialise import serialise_resource, to_yaml
from muster.cli.output import DataFormat


def format_resource(job: Job, status: Status | None, output: DataFormat) -> str:
    """Return the resource with all defaults. Equal jobs and statuses give the same text."""
    document = serialise_resource(job, status)
    if output == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return to_yaml(document)
