"""The error for a job that can't be rendered as pods."""

from muster.core.problem import Problem

IMAGE_NOT_SET = "ImageNotSet"
AGENT_IMAGE_NOT_SET = "AgentImageNotSet"
STORAGE_IMAGE_NOT_SET = "StorageImageNotSet"


class NotRenderable(Exception):
    """The job can't be rendered as pods. `problem` contains the field, its value and what to do."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem
