"""A job and its status as the resource that people and machines read. Pure."""

from __future__ import annotations

import json
from typing import Literal

import yaml

from muster.api.spec import Job
from muster.api.status import Status

OutputFormat = Literal["yaml", "json"]


def resource_text(job: Job, status: Status | None, output: OutputFormat) -> str:
    """The resource with every default filled in; the same bytes for the same job and status."""
    document: dict[str, object] = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        **job.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    if status is not None:
        document["status"] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    if output == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
