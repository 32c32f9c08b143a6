"""The mutating webhook: it merges the template that a new job names into the job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from muster.api.document import JSON, Document
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.json_fields import read_mapping
from muster.api.spec.template_ref import TemplateRef
from muster.controller.webhook.review import REVIEW_TYPE, Review, make_denial_status
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.object_parser import MISSING_PARTS, read_missing_parts
from muster.render.training_template.admission import build_patch, describe_missing, merge_template
from muster.render.training_template.expand import find_reference, read_reference

READ_SECONDS = 2.0
"""The API server waits 3 s for the webhook."""

ReadTemplate = Callable[[TemplateRef, str], Awaitable[Object]]
"""Returns a template; the second argument is the job's namespace. Raises `ApiError`."""


@dataclass(frozen=True)
class TemplateMerger:
    """Answers reviews of new jobs. It reads each template again, because a template may have changed."""

    read_template: ReadTemplate

    async def answer(self, review: Review) -> dict[str, JSON]:
        """Return an AdmissionReview with a patch of the spec, or with the problems of the job or its template."""
        job = read_mapping(review.fields.get("object"))
        # The CRD's rules refuse a job whose template is not merged.
        if read_missing_parts(job) or find_reference(Document(job)) is None:
            return _respond(review, {"allowed": True})
        try:
            spec = await self._merge({name: part for name, part in job.items() if name != MISSING_PARTS}, review)
        except InvalidResource as error:
            return _respond(review, {"allowed": False, "status": dict(make_denial_status(review, error.problems))})
        return _respond(review, {"allowed": True, **spec})

    async def _merge(self, job: Object, review: Review) -> dict[str, JSON]:
        reference = read_reference(find_reference(Document(dict(job))))
        try:
            async with asyncio.timeout(READ_SECONDS):
                template = await self.read_template(reference, review.namespace)
        except TimeoutError:
            late = ApiError(NO_RESPONSE, "Timeout", f"the API server sent no answer within {READ_SECONDS:g} s")
            raise _refuse(describe_missing(reference, review.namespace, late)) from None
        except ApiError as error:
            raise _refuse(describe_missing(reference, review.namespace, error)) from None
        # A job with generateName has no name yet.
        metadata = {"name": "unnamed", **read_mapping(job.get("metadata"))}
        return build_patch(merge_template({**job, "metadata": metadata}, template))


def _refuse(problem: FieldProblem) -> InvalidResource:
    return InvalidResource((problem,))


def _respond(review: Review, response: dict[str, JSON]) -> dict[str, JSON]:
    return {**REVIEW_TYPE, "response": {"uid": review.uid, **response}}
