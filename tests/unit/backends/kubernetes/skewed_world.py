"""A simulated world whose machines have different clocks: the cluster's reports about a pod have their timestamps."""

from dataclasses import dataclass, field, replace

from muster.core.facts import NodeFacts, ProcessState
from muster.diagnose.kubernetes.node_facts import apply_agent_report
from muster.diagnose.kubernetes.pod_facts import derive_process_facts
from muster.objects.kubernetes.containers import Container, Running, Terminated, Waiting
from muster.objects.kubernetes.observations import Observations, observe_pod
from muster.objects.kubernetes.pods import Condition, PodView
from unit.core.builders import T0, UID, job
from unit.core.simulated import SimulatedNode, World


@dataclass
class SkewedNode(SimulatedNode):
    """`skew` is how far its machine's clock is ahead (seconds), `delay` how late its kubelet reports."""

    skew: float = 0.0
    delay: float = 0.0
    reported: list[tuple[float, PodView]] = field(default_factory=list)
    pod: PodView | None = None
    observations: Observations | None = None

    def tick(self, now: float, first_rank: int) -> None:
        super().tick(now, first_rank)
        if self.process.state is not ProcessState.MISSING:
            self.reported.append((now + self.delay, self.as_pod()))
        for at, pod in [entry for entry in self.reported if entry[0] <= now]:
            if pod != self.pod:
                self.pod, self.observations = pod, observe_pod(pod, self.observations, now)
            self.reported.remove((at, pod))

    def facts(self) -> NodeFacts:
        current = super().facts()
        if self.pod is None or self.observations is None or self.process.state is ProcessState.MISSING:
            return current
        value = derive_process_facts(self.pod, (), self.observations)
        ended = self.observations.end
        process = apply_agent_report(value, self.agent_facts, None if ended is None else ended.at)
        # The agents here use a loopback address, which pods can't.
        return replace(current, process=replace(process, lost_at=self.lost_at, name=None))

    def as_pod(self) -> PodView:
        """Return the pod as its kubelet reports it."""
        process = self.process
        placed = Condition("PodScheduled", is_true=True, at=T0 + self.skew)
        return PodView(
            name=f"digits-{self.number}-{process.replacement}",
            namespace="team",
            uid=f"pod-{self.number}-{process.replacement}",
            job_uid=UID,
            node=self.number,
            replacement=process.replacement,
            phase="Running",
            trainer=Container("trainer", "image:1", self._state()),
            conditions=(placed,),
        )

    def _state(self) -> Running | Terminated | Waiting:
        process = self.process
        started_at = None if process.started_at is None else float(int(process.started_at + self.skew))
        if process.state is ProcessState.RUNNING:
            return Running(started_at)
        if process.state is not ProcessState.EXITED:
            return Waiting()
        assert process.ended_at is not None
        return Terminated(
            exit_code=137 if process.exit_code is None else process.exit_code,
            reason="OOMKilled" if process.problem is not None else "Completed",
            started_at=started_at,
            finished_at=float(int(process.ended_at + self.skew)),
        )


def skewed_world(skews: tuple[float, ...], delays: tuple[float, ...]) -> World:
    """Return a node for each skew."""
    nodes: list[SimulatedNode] = [
        SkewedNode(number, 2, skew=skew, delay=delay)
        for number, (skew, delay) in enumerate(zip(skews, delays, strict=True))
    ]
    return World(job(len(nodes), 2, startup=86400), nodes)
