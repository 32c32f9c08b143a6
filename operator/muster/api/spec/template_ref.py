"""`spec.templateRef` as types: the template from which muster takes what the job does not set."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.spec.model import Model

MAX_GENERATION = 2**53
"""More changes than any object has. All JSON parsers read this number exactly."""

TemplateKind = Literal["TrainingTemplate", "ClusterTrainingTemplate"]


class TemplateRef(Model):
    """A template of the job's namespace, or of the cluster."""

    kind: TemplateKind = Field(
        default="TrainingTemplate",
        description="TrainingTemplate: a template in the job's namespace. ClusterTrainingTemplate: one for all "
        "namespaces.",
    )
    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")] = Field(
        description="The template's name."
    )
    generation: int | None = Field(
        default=None,
        description="muster sets it when it merges the template into a new job: the template's metadata.generation. "
        "A later change of the template does not change the job.",
        ge=0,
        le=MAX_GENERATION,
    )
