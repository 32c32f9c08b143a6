"""Explain which fields of a job come from its template. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from muster.api.document import JSON, FieldPath, format_path
from muster.api.json_fields import read_mapping
from muster.cli.explain.explanation import Explanation
from muster.render.training_template.expand import REFERENCE, ExpandedJob
from muster.render.training_template.merge import MERGED_LISTS, MERGED_OBJECTS

_GROUP = "the job's fields"
_JOB = "job"


def explain_template(job: ExpandedJob) -> Sequence[Explanation]:
    """Return an entry for each field that the job or its template sets; none without a template."""
    if job.template is None:
        return ()
    spec = read_mapping(read_mapping(job.document.value).get("spec"))
    return tuple(
        Explanation(_GROUP, setting, json.dumps(value, ensure_ascii=False), *_describe_source(job, setting))
        for setting, value in _iterate_fields(spec)
    )


def _iterate_fields(spec: dict[str, JSON]) -> Iterator[tuple[str, JSON]]:
    for name, value in spec.items():
        if name != REFERENCE:
            yield from _iterate_field((name,), value)


def _iterate_field(path: FieldPath, value: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield the parts of a field that the merge treats each on its own."""
    if isinstance(value, dict) and path in MERGED_OBJECTS:
        for name, part in value.items():
            yield from _iterate_field((*path, name), part)
    elif isinstance(value, list) and path[-1] in MERGED_LISTS and len(path) == 1:
        for index, part in enumerate(value):
            yield format_path(("spec", *path, index)), part
    else:
        yield format_path(("spec", *path)), value


def _describe_source(job: ExpandedJob, setting: str) -> tuple[str, str]:
    origin = job.describe_origin(setting)
    if origin is None:
        return _JOB, "the job sets it"
    if origin == str(job.template):
        return origin, "the job does not set it"
    return origin, "muster merges partial pods"
