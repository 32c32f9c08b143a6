"""A job that can't become pods, found without asking the cluster."""

from muster.plan.facts import Trouble

IMAGE_NOT_SET = "ImageNotSet"
AGENT_IMAGE_NOT_SET = "AgentImageNotSet"


class NotRenderable(Exception):
    """`trouble` says which field, what was found there and what to do."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble
