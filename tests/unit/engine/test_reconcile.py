"""The reconciliation of a job, in a world without events of its own."""

from collections.abc import Sequence
from dataclasses import replace

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.node_jobs import NodeDecisions, NodeJobBackend
from muster.core.actions import Action, KillNode, SendCommand
from muster.core.facts import JobFacts
from muster.engine.reconcile import reconcile
from unit.core.builders import START, T0, facts, job, rank, running_node


class SilentNodes:
    """Nodes whose agents are stopped: they get commands and don't obey."""

    def __init__(self, current: JobFacts) -> None:
        self.known = current
        self.now = T0
        self.killed: list[int] = []
        self.written = Status()

    async def observe(self, _: Job) -> JobFacts:
        return self.known

    async def write(self, status: Status) -> None:
        self.written = status

    write_now = write

    async def apply(self, _: Job, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, SendCommand):
                value = [
                    replace(node, command=action.command, command_sent_at=self.now)
                    if node.node in action.nodes
                    else node
                    for node in self.known.nodes
                ]
                self.known = replace(self.known, nodes=tuple(value))
            if isinstance(action, KillNode):
                self.killed.append(action.node)


async def test_an_agent_that_does_not_answer_is_killed_though_nothing_else_happens() -> None:
    nodes = SilentNodes(facts(running_node(0, rank(0)), running_node(1, rank(1))))
    a_job = job(procs=1, deadline=60)
    status, now = Status(), START
    for _ in range(20):
        nodes.now = now
        result = await reconcile(a_job, status, NodeJobBackend(nodes, NodeDecisions(1)), nodes, now)
        status = result.status
        if nodes.killed:
            break
        assert result.requeue_at is not None
        assert result.requeue_at > now
        now = result.requeue_at
    assert nodes.killed == [0, 1]
