"""Merge the specs of a template and a job. The job's values take precedence.

| fields | how they are merged |
|---|---|
| `MERGED_OBJECTS` | field by field |
| `MERGED_LISTS` | entry by entry, by name; the job's entry replaces the template's entry of its name |
| `template`, the partial pod | as muster merges partial pods: see `render/kubernetes/merge.py` |
| all others | the job's value replaces the template's |

The API server adds the defaults of the CRD to a job before muster sees it. So a value that equals its default counts as
not set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from muster.api.document import JSON, FieldPath
from muster.api.json_fields import read_mapping, read_string
from muster.api.schema import find_schema
from muster.render.kubernetes import merge as pods

MERGED_OBJECTS: frozenset[FieldPath] = frozenset(
    {
        ("resources",),
        ("resources", "limits"),
        ("resources", "requests"),
        ("hyperparameters",),
        ("network",),
        ("agent",),
        ("elastic",),
        ("failurePolicy",),
        ("sagemaker",),
        ("sagemaker", "tags"),
    }
)
"""Objects whose fields are independent of each other. Others, such as `launcher`, are one choice."""

MERGED_LISTS = ("env", "metrics", "inputs")

POD = ("template",)

ALTERNATIVES: Mapping[FieldPath, FieldPath] = {
    ("sagemaker", "instanceType"): ("sagemaker", "instanceGroups"),
    ("sagemaker", "instanceGroups"): ("sagemaker", "instanceType"),
}
"""Fields of which a job has only one: if the job sets the value, muster ignores the key of the template."""


class Origin(StrEnum):
    """Where a value of the merged spec comes from."""

    TEMPLATE = "Template"
    BOTH = "Both"


@dataclass(frozen=True)
class MergedSpec:
    """A merged spec. `origins` has the paths of the values that are not the job's own."""

    spec: Mapping[str, JSON]
    origins: Mapping[FieldPath, Origin]


def merge_specs(template: Mapping[str, JSON], job: Mapping[str, JSON]) -> MergedSpec:
    """Return the job's spec with the template's values where the job sets none."""
    merger = _Merger(job)
    return MergedSpec(merger.merge_objects((), template, job), merger.origins)


@dataclass
class _Merger:
    job: Mapping[str, JSON]
    origins: dict[FieldPath, Origin] = field(default_factory=dict)

    def merge_objects(self, path: FieldPath, template: Mapping[str, JSON], job: Mapping[str, JSON]) -> dict[str, JSON]:
        result = dict(job)
        for name, value in template.items():
            merged = self._merge((*path, name), value, job.get(name))
            if merged is not None:
                result[name] = merged
        return result

    def _merge(self, path: FieldPath, template: JSON, job: JSON) -> JSON:
        if template is None or self._has_alternative(path):
            return job
        if job is None or _is_default(path, job):
            self.origins[path] = Origin.TEMPLATE
            return template
        if path in MERGED_OBJECTS and isinstance(template, dict) and isinstance(job, dict):
            return self.merge_objects(path, template, job)
        if path in {(name,) for name in MERGED_LISTS} and isinstance(template, list) and isinstance(job, list):
            return self._merge_lists(path, template, job)
        if path == POD and isinstance(template, dict) and isinstance(job, dict):
            self.origins[path] = Origin.BOTH
            return pods.merge(template, job)
        return job

    def _merge_lists(self, path: FieldPath, template: Sequence[JSON], job: Sequence[JSON]) -> list[JSON]:
        own = {name for entry in job if (name := _get_name(entry)) is not None}
        kept = [entry for entry in template if _get_name(entry) not in own]
        self.origins.update({(*path, index): Origin.TEMPLATE for index in range(len(kept))})
        return [*kept, *job]

    def _has_alternative(self, path: FieldPath) -> bool:
        """Whether the job sets the field that excludes the one at `path`."""
        other = ALTERNATIVES.get(path)
        if other is None:
            return False
        value: JSON = dict(self.job)
        for part in other:
            value = read_mapping(value).get(str(part))
        return value is not None


def _get_name(entry: JSON) -> str | None:
    # The webhook gets a job before the API server has compared it with the schema: a name may be a list.
    return read_string(read_mapping(entry).get("name")) or None


def _is_default(path: FieldPath, value: JSON) -> bool:
    schema = find_schema(("spec", *path))
    return schema is not None and "default" in schema and schema["default"] == value
