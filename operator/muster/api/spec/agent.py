"""`spec.agent` as a type: how muster's agent gets into the pods."""

from typing import Literal

from pydantic import Field

from muster.api.spec.model import Model


class Agent(Model):
    """muster's agent in the container of the ranks."""

    inject: Literal["ConfigMap", "InitContainer"] = Field(
        default="ConfigMap",
        description="ConfigMap: the image's own python3, 3.8 or newer, runs the agent. InitContainer: muster copies "
        "the agent with its own Python from the operator's image into the pod. That works in any Linux image, also "
        "one without a shell.",
    )
