"""`spec.queue` as types: the scheduler that admits all pods of a job together."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import Model

QueueName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]


class Coscheduling(Model):
    """The coscheduling plug-in of Kubernetes' scheduler-plugins. It has no queues."""

    scheduler_name: str = Field(
        default="scheduler-plugins-scheduler",
        description="The scheduler with the plug-in; the default is the name in the plug-ins' chart.",
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
    )


class Queue(Model):
    """Gang scheduling: exactly one of these fields is set."""

    kueue: QueueName | None = Field(default=None, description="A LocalQueue of Kueue, in the job's namespace.")
    volcano: QueueName | None = Field(default=None, description="A queue of Volcano.")
    coscheduling: Coscheduling | None = Field(default=None, description="Gang scheduling by the coscheduling plug-in.")
