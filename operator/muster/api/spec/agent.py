"""The type of `spec.agent`."""

from typing import Literal

from pydantic import Field

from muster.api.spec.model import Model


class Agent(Model):
    """How muster adds its agent to the pods."""

    inject: Literal["ConfigMap", "InitContainer"] = Field(
        default="ConfigMap",
        description="ConfigMap: the image's own python3 (3.8 or newer) runs the agent. InitContainer: muster copies "
        "the agent and a Python from the operator's image into the pod, which works with any Linux image, even "
        "with one that has no shell.",
    )
