"""Format a job and its status as the user asked."""

from __future__ import annotations

import json
from typing import Literal

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.api.yaml.serialise import resource, to_yaml

OutputFormat = Literal["yaml", "json"]


def resource_text(job: Job, status: Status | None, output: OutputFormat) -> str:
    """The resource with all defaults; the same bytes for the same job and status."""
    document = resource(job, status)
    if output == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return to_yaml(document)
