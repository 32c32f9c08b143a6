"""The mutating webhook: it merges the template that a job names into the job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.json_fields import read_mapping
from muster.api.spec.template_ref import TemplateRef
from muster.controller.webhook.review import REVIEW_TYPE, Review, make_denial_status
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.object_parser import MISSING_PARTS, read_missing_parts
from muster.render.training_template.admission import (
    build_patch,
    describe_missing,
    find_kept_template,
    get_reference,
    is_merged_copy,
    read_current_template,
)
from muster.render.training_template.expand import REFERENCE, read_reference
from muster.render.training_template.template import TrainingTemplate

READ_SECONDS = 2.0
"""The API server waits 3 s for the webhook."""

ReadTemplate = Callable[[TemplateRef, str], Awaitable[Object]]
"""Returns a template; the second argument is the job's namespace. Raises `ApiError`."""


@dataclass(frozen=True)
class TemplateMerger:
    """Answers reviews of jobs. It reads the template of each new job again, because it may have changed."""

    read_template: ReadTemplate

    async def answer(self, review: Review) -> dict[str, JSON]:
        """Return an AdmissionReview with a patch of the job, or with the problems of the job or its template."""
        job, old_job = (_drop_missing_parts(review.fields.get(name)) for name in ("object", "oldObject"))
        # The CRD's rules refuse a new job whose template is not merged.
        if job is None or get_reference(job) is None or (not old_job and is_merged_copy(job)):
            return _respond(review, {"allowed": True})
        try:
            template = find_kept_template(job, old_job or {}) or await self._read(job, review.namespace)
            # A job with generateName has no name yet.
            metadata = {"name": "unnamed", **read_mapping(job.get("metadata"))}
            return _respond(review, {"allowed": True, **build_patch({**job, "metadata": metadata}, template)})
        except InvalidResource as error:
            return _respond(review, {"allowed": False, "status": dict(make_denial_status(review, error.problems))})

    async def _read(self, job: Object, namespace: str) -> TrainingTemplate:
        """Return the template as it is now. Raises `InvalidResource`."""
        reference = read_reference(get_reference(job))
        if reference.generation is not None:
            message = "muster sets this field when it merges the template; remove it"
            raise InvalidResource((FieldProblem(f"spec.{REFERENCE}.generation", message),))
        try:
            async with asyncio.timeout(READ_SECONDS):
                template = await self.read_template(reference, namespace)
        except TimeoutError:
            late = ApiError(NO_RESPONSE, "Timeout", f"the API server sent no answer within {READ_SECONDS:g} s")
            raise InvalidResource((describe_missing(reference, namespace, late),)) from None
        except ApiError as error:
            raise InvalidResource((describe_missing(reference, namespace, error),)) from None
        return read_current_template(template)


def _drop_missing_parts(value: JSON) -> Object | None:
    """Return an object of the review; an empty one for null. None if muster has not read all of it."""
    source = read_mapping(value)
    return (
        None if read_missing_parts(source) else {name: part for name, part in source.items() if name != MISSING_PARTS}
    )


def _respond(review: Review, response: dict[str, JSON]) -> dict[str, JSON]:
    return {**REVIEW_TYPE, "response": {"uid": review.uid, **response}}
