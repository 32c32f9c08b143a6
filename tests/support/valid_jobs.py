"""Builds jobs from a spec as in YAML, for tests."""

from collections.abc import Mapping

from muster.api import names
from muster.api.document import JSON, Document
from muster.api.spec.job import Job
from muster.api.validation.validate import validate


def make_job(name: str, spec: Mapping[str, JSON]) -> Job:
    """`make_job("vit", {"nodes": 2, ...})`. Raises `InvalidResource`."""
    return validate(
        Document({"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": {"name": name}, "spec": dict(spec)})
    )
