"""A job that can't become pods, found without asking the cluster."""

from muster.core.facts import Problem

IMAGE_NOT_SET = "ImageNotSet"
AGENT_IMAGE_NOT_SET = "AgentImageNotSet"
STORAGE_IMAGE_NOT_SET = "StorageImageNotSet"


class NotRenderable(Exception):
    """`problem` says which field, what was found there and what to do."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem
