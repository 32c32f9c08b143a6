"""Serialise a job and its status as a resource, without unset fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml
from yaml.nodes import ScalarNode

from muster.api.document import JSON
from muster.api.names import API_VERSION, KIND
from muster.api.spec.job import Job
from muster.api.yaml.scalars import NotJSON, resolve_scalar

if TYPE_CHECKING:
    # `muster render` writes no status.
    from muster.api.status.status import Status


def serialise_resource(job: Job, status: Status | None = None) -> dict[str, JSON]:
    """Return the whole resource; parsing it yields an equal job."""
    metadata: dict[str, JSON] = {"name": job.metadata.name, "namespace": job.metadata.namespace}
    if job.metadata.uid:
        metadata.update(uid=job.metadata.uid, generation=job.metadata.generation)
    result: dict[str, JSON] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": serialise_spec(job),
    }
    if status is not None:
        result["status"] = serialise_status(status)
    return result


def serialise_spec(job: Job) -> dict[str, JSON]:
    """Return the spec with every default, without empty lists and maps."""
    fields = job.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {key: value for key, value in fields.items() if value not in ([], {})}


def serialise_status(status: Status) -> dict[str, JSON]:
    """Return the status for a patch of the resource, without unknown values."""
    fields = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    # Omit default values only in ranks and progress: Kubernetes requires a condition's message, even an empty one.
    fields |= status.model_dump(mode="json", by_alias=True, exclude_defaults=True, include={"ranks", "progress"})
    return {key: value for key, value in fields.items() if value not in ([], {}, "")}


def to_yaml(value: JSON, *, is_ascii: bool = False) -> str:
    """Serialise a resource as YAML that kubectl parses to the same value. `is_ascii`: escape all other characters."""
    return yaml.dump(value, Dumper=_ReadableDumper, sort_keys=False, allow_unicode=not is_ascii, width=120)


class _ReadableDumper(yaml.SafeDumper):
    """A dumper that writes multi-line text as blocks, uses no anchors, and quotes text that kubectl misreads."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML defines the parameter
        return True

    def represent_text(self, text: str) -> ScalarNode:
        """Quote text such as `y` and `3e-5`, which PyYAML does not quote and kubectl would read as true or a number."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=_choose_style(text))


_ReadableDumper.add_representer(str, _ReadableDumper.represent_text)


def _choose_style(text: str) -> str | None:
    if not text.replace("\n", "").isprintable():
        return '"'  # escape characters that YAML would fold or treat as a line break
    if "\n" in text:
        return "|"
    try:
        return None if isinstance(resolve_scalar(text), str) else "'"
    except NotJSON:
        return "'"
