"""For any sequence of faults and requests a job restarts within its budget, once for each cause, and ends."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from muster.api.spec.elastic import Elastic
from muster.api.spec.failure_policy import MAX_HISTORY, FailurePolicy, FailureRule
from muster.api.spec.job import Job
from muster.api.status.restarts import RestartRecord
from muster.api.timestamps import parse_timestamp
from muster.core.actions import KillNode
from muster.core.facts import ProcessState
from muster.core.membership.member_text import parse_members
from muster.core.restarts import PLANNED_RESTARTS, RESTART_REQUESTED
from support.searches import choose_example_count
from unit.core.builders import job, with_spec
from unit.core.disturbed_world import DisturbedNode, new_disturbed_world
from unit.core.test_any_operator import check_round, condition_status, with_suspend

IGNORED_CODE, FATAL_CODE = 9, 8
RULES = (FailureRule(action="Ignore", exit_codes=(IGNORED_CODE,)), FailureRule(action="Fail", exit_codes=(FATAL_CODE,)))

POLICIES = st.builds(
    FailurePolicy,
    max_restarts=st.integers(0, 3),
    max_disruptions=st.integers(0, 3),
    window_seconds=st.sampled_from((None, 30, 300)),
    hang_timeout_seconds=st.sampled_from((None, 20)),
    restart_scope=st.sampled_from(("InPlace", "InPlace", "Pods")),
    rules=st.sampled_from(((), RULES)),
)
NODES = st.integers(0, 2)
ROUNDS = st.integers(1, 6)
WAITING_TIMES = st.sampled_from((1.0, 10.0, 40.0, 140.0))
"""After the longest of them muster counts a disconnected node as lost."""

REPORTS_RECEIVED_SECONDS = 40.0
"""The time after which any operator, even a new one, has observed which agents report."""

HEARTBEAT = 4.0
ENOUGH_ROUNDS = 400
"""The limit of rounds until a job ends. With the longest backoff it needs far fewer."""


def job_with(policy: FailurePolicy | None, nodes: int) -> Job:
    """Return a job with a long startup timeout."""
    return with_spec(job(nodes, 2, startup=86400), failure_policy=policy)


class AnyFaults(RuleBasedStateMachine):
    """A job whose ranks, pods, machines, agents and operator fail in any order while its user changes the spec."""

    @initialize(
        policy=st.one_of(POLICIES, POLICIES, st.none()), nodes=st.integers(1, 3), stays_disconnected=st.booleans()
    )
    def create_job(self, policy: FailurePolicy | None, nodes: int, *, stays_disconnected: bool) -> None:
        """Apply the job, and start it."""
        self.policy, self.stays_disconnected = policy, stays_disconnected
        self.world, self.nodes = new_disturbed_world(self.make_job(policy, nodes))
        self.records: list[RestartRecord] = []
        self.causes = self.requests = self.suspensions = 0
        self.is_training = True
        self.reconcile(4)

    def make_job(self, policy: FailurePolicy | None, nodes: int) -> Job:
        """Return the job."""
        return job_with(policy, nodes)

    def reconcile(self, rounds: int = 1, *, applied: int | None = None) -> None:
        """Run rounds and check each decision."""
        for _ in range(rounds):
            before = self.world.status
            for node in self.nodes:
                for rank in node.ranks if self.is_training and not node.is_frozen else ():
                    rank.complete_step(self.world.now)
            check_round(self.world, before, self.world.run_round(applied=applied))
            self._check_ranks()
            self._record_restarts()

    def _check_ranks(self) -> None:
        """Check that ranks of at most one attempt run, including ranks that the operator can't observe."""
        if self.policy is not None:
            assert len({node.attempt for node in self.nodes if node.runs_ranks}) <= 1, "two attempts run at once"

    def _record_restarts(self) -> None:
        restarts = self.world.status.restarts
        if restarts is None:
            return
        assert len(restarts.history) <= MAX_HISTORY
        last = restarts.history[-1]
        if self.records and last.attempt == self.records[-1].attempt:
            return
        assert last.attempt > (self.records[-1].attempt if self.records else 0)
        self.records.append(last)
        assert restarts.total == len(self.records)
        self._check_budget(last)

    def _check_budget(self, last: RestartRecord) -> None:
        if last.counts_as == "Nothing":
            return
        assert self.policy is not None
        limit = self.policy.max_restarts if last.counts_as == "Failure" else self.policy.max_disruptions
        window = self.policy.window_seconds
        since = parse_timestamp(last.at) - window if window is not None else 0.0
        counted = [
            record
            for record in self.records
            if record.counts_as == last.counts_as and parse_timestamp(record.at) > since
        ]
        assert len(counted) <= limit, [(record.attempt, record.reason, record.at) for record in counted]

    @property
    def members(self) -> list[DisturbedNode]:
        """The nodes of the current attempt."""
        members = parse_members(self.world.status.members or "", len(self.nodes))
        return self.nodes if members is None else [self.nodes[member] for member in members]

    def node(self, number: int) -> DisturbedNode:
        """Return a node of the job. `number` may exceed the number of nodes."""
        return self.nodes[number % len(self.nodes)]

    @rule(rounds=ROUNDS)
    def wait(self, rounds: int) -> None:
        """Run rounds without an event."""
        self.reconcile(rounds)

    @rule(seconds=WAITING_TIMES)
    def pass_time(self, seconds: float) -> None:
        """Let time pass, with a round at each heartbeat."""
        until = self.world.now + seconds
        while self.world.now < until:
            self.world.now += min(HEARTBEAT, until - self.world.now)
            self.reconcile()
        if seconds >= REPORTS_RECEIVED_SECONDS:
            self._check_shown_ranks()

    def _check_shown_ranks(self) -> None:
        """Check that ranks without reports do not count as running, nor ranks that have ended."""
        status = self.world.status
        reporting = [
            node
            for node in self.nodes
            if node.is_alive and not (node.is_frozen or node.are_reports_held or node.is_disconnected)
        ]
        running = sum(rank.ended_at is None for node in reporting for rank in node.ranks)
        assert status.phase != "Running" or status.ranks is None or status.ranks.running <= running, status.message

    @rule(seconds=st.sampled_from((1.0, 20.0)))
    def skip_time(self, seconds: float) -> None:
        """Run no round for some time: the operator is busy, or its machine is suspended."""
        self.world.now += seconds
        self.reconcile()

    @rule(number=NODES, code=st.sampled_from((7, 7, IGNORED_CODE, FATAL_CODE)), rounds=ROUNDS)
    def fail_rank(self, number: int, code: int, rounds: int) -> None:
        """Let a rank fail with an error in its output."""
        ranks = [rank for rank in self.node(number).ranks if rank.ended_at is None]
        if ranks and self.node(number).is_alive:
            self.causes += 1
            ranks[0].end(self.world.now, code, None, f"ValueError: cause {self.causes}.")
        self.reconcile(rounds)

    @rule(number=NODES, rounds=ROUNDS)
    def kill_all_ranks(self, number: int, rounds: int) -> None:
        """Kill all ranks of a node, as the kernel does."""
        if self.node(number).is_alive:
            self.causes += 1
            for rank in self.node(number).ranks:
                rank.end(self.world.now, None, 9)
        self.reconcile(rounds)

    @rule(number=NODES, rounds=ROUNDS)
    def kill_container(self, number: int, rounds: int) -> None:
        """Kill the container of a pod, and the agent with it."""
        self.causes += 1
        self.world.kill_container(number % len(self.nodes))
        self.reconcile(rounds)

    @rule(number=NODES, rounds=ROUNDS)
    def delete_pod(self, number: int, rounds: int) -> None:
        """Delete a pod without a grace period."""
        self.causes += 1
        self.node(number).delete(self.world.now, 30.0)
        self.reconcile(rounds)

    @rule(number=NODES, rounds=ROUNDS)
    def drain(self, number: int, rounds: int) -> None:
        """Delete a pod with its grace period."""
        self.causes += 1
        self.node(number).drain(self.world.now)
        self.reconcile(rounds)

    @rule(number=NODES, rounds=ROUNDS)
    def disconnect(self, number: int, rounds: int) -> None:
        """Disconnect a machine."""
        self.causes += 1
        self.node(number).disconnect(self.world.now)
        self.reconcile(rounds)

    @rule(number=NODES, rounds=ROUNDS)
    def reconnect(self, number: int, rounds: int) -> None:
        """Reconnect a machine."""
        self.node(number).reconnect(self.world.now)
        self.reconcile(rounds)

    @rule(number=NODES, rounds=ROUNDS)
    def freeze_or_thaw(self, number: int, rounds: int) -> None:
        """Freeze an agent, or let it continue."""
        self.node(number).is_frozen = not self.node(number).is_frozen
        self.reconcile(rounds)

    @rule(number=NODES, rounds=ROUNDS)
    def hold_or_release_reports(self, number: int, rounds: int) -> None:
        """Delay the reports of a node, or deliver all delayed ones."""
        self.node(number).are_reports_held = not self.node(number).are_reports_held
        self.reconcile(rounds)

    @rule(number=NODES, index=st.integers(0, 39), rounds=ROUNDS)
    def repeat_report(self, number: int, index: int, rounds: int) -> None:
        """Deliver an earlier report again."""
        self.node(number).repeat_report(index, self.world.now)
        self.reconcile(rounds)

    @rule(number=NODES)
    def delay_next_pod(self, number: int) -> None:
        """Delay the start of the node's next pod."""
        self.node(number).rounds_until_start = 3

    @rule(rounds=ROUNDS)
    def hang_or_train(self, rounds: int) -> None:
        """Let all ranks hang, or let them continue."""
        self.causes += self.is_training
        self.is_training = not self.is_training
        self.reconcile(rounds)

    @rule(value=st.integers(0, 3), rounds=ROUNDS)
    def request_restart(self, value: int, rounds: int) -> None:
        """Request a restart with the annotation."""
        self.requests += self.world.request != str(value)
        self.world.request = str(value)
        self.reconcile(rounds)

    @rule(rounds=ROUNDS)
    def suspend_or_resume(self, rounds: int) -> None:
        """Suspend the job, or resume it."""
        suspend = not self.world.job.spec.suspend
        self.suspensions += suspend
        self.world.job = with_suspend(self.world, suspend=suspend)
        self.reconcile(rounds)

    @rule(rounds=ROUNDS)
    def restart_operator(self, rounds: int) -> None:
        """Start another operator, which knows only the status."""
        self.world.restart_operator()
        self.reconcile(rounds)

    @rule(applied=st.integers(0, 4), rounds=ROUNDS)
    def kill_operator(self, applied: int, rounds: int) -> None:
        """Kill the operator between two actions."""
        self.reconcile(applied=applied)
        self.reconcile(rounds)

    @invariant()
    def decisions_settle(self) -> None:
        """Check that without new facts the decisions soon have no more actions."""
        for _ in range(6):
            before = self.world.status
            # A pod on a disconnected machine can't be killed, so each round decides to kill it.
            actions = [action for action in self.world.reconcile() if not isinstance(action, KillNode)]
            self._record_restarts()
            if not actions and self.world.status == before:
                return
        pytest.fail(f"the decisions do not settle: {actions}")

    @invariant()
    def each_cause_restarts_at_most_once(self) -> None:
        """Check that each restart has a different cause."""
        assert len([record for record in self.records if record.reason == RESTART_REQUESTED]) <= self.requests
        failures = [record for record in self.records if record.reason not in PLANNED_RESTARTS]
        assert len(failures) <= self.causes
        assert self.world.status.attempt <= 1 + len(self.records) + self.suspensions
        messages = [record.message.partition("cause ")[2] for record in self.records]
        named = [message.partition(".")[0] for message in messages if message]
        assert len(set(named)) == len(named), named

    def teardown(self) -> None:
        """End the faults and let the ranks succeed. Check that the job succeeds or has failed."""
        self.is_training = True
        self.world.job = with_suspend(self.world, suspend=False)
        for node in self.nodes:
            node.is_frozen = node.are_reports_held = False
            if not self.stays_disconnected or all(member.is_disconnected for member in self.members):
                node.reconnect(self.world.now)
        for _ in range(ENOUGH_ROUNDS):
            self.reconcile()
            self.world.now += HEARTBEAT
            if self.world.status.final_condition is not None:
                break
            self._let_ranks_succeed()
        assert self.world.status.final_condition is not None, (self.world.status.phase, self.world.status.message)
        self.reconcile(5)
        self._check_end()

    def _heal_last_members(self) -> None:
        # A job can continue on some of its machines, but not on none. The members change: a resumed job starts with
        # its first nodes again, and a user may have asked for fewer.
        if all(each.is_disconnected for each in self.members):
            for node in self.nodes:
                node.reconnect(self.world.now)

    def _let_ranks_succeed(self) -> None:
        members = self.members
        if members and all(node.ranks and node.attempt == self.world.status.attempt for node in members):
            for node in members:
                for rank in node.ranks:
                    rank.end(self.world.now, 0, None)

    def _check_end(self) -> None:
        if condition_status(self.world.status, "Complete") == "True":
            members = self.members
            ends = [(node.attempt, rank.exit_code, rank.stopped) for node in members for rank in node.ranks]
            assert ends == [(self.world.status.attempt, 0, False)] * (2 * len(members))
        else:
            assert self.causes, self.world.status.message
        assert not any(node.runs_ranks and not node.is_disconnected for node in self.nodes), "a rank still runs"
        assert not any(
            node.process.state is ProcessState.RUNNING and not node.is_disconnected for node in self.nodes
        ), "an agent still runs"


class AnyFaultsOfElasticJobs(AnyFaults):
    """The same for an elastic job, whose number of nodes changes."""

    def make_job(self, policy: FailurePolicy | None, nodes: int) -> Job:
        """Return an elastic job of one to `nodes` + 1 nodes."""
        policy = (policy or FailurePolicy()).model_copy(update={"restart_scope": "InPlace"})
        self.policy = policy
        plain = job_with(policy, nodes)
        elastic = Elastic(min_nodes=1, max_nodes=nodes + 1, resize_after_seconds=20, grow_after_seconds=30)
        return with_spec(plain, elastic=elastic)

    @rule(nodes=st.integers(1, 4), rounds=ROUNDS)
    def scale(self, nodes: int, rounds: int) -> None:
        """Change the number of nodes in the spec."""
        count = min(nodes, len(self.nodes))
        self.world.job = with_spec(self.world.job, nodes=count)
        self.reconcile(rounds)

    @invariant()
    def each_rank_runs_on_one_node(self) -> None:
        """Check that no two nodes run the same rank, and that the number of members stays within its limits."""
        running = [rank.number for node in self.nodes if node.is_alive for rank in node.ranks if rank.ended_at is None]
        assert len(running) == len(set(running)), running
        assert 1 <= len(self.members) <= len(self.nodes)


def run_jobs(number: int, machine: type[AnyFaults] = AnyFaults) -> None:
    """Run `number` jobs with 25 events each."""
    # Shrinking a failing job takes minutes. Its events are readable without it.
    phases = [Phase.reuse, Phase.generate]
    job_settings = settings(max_examples=number, stateful_step_count=25, deadline=None, phases=phases)
    run_state_machine_as_test(machine, settings=settings(job_settings, suppress_health_check=list(HealthCheck)))


@pytest.mark.hypothesis
def test_a_job_with_any_faults_restarts_within_its_budget_and_ends() -> None:
    run_jobs(choose_example_count(30, share=6))


@pytest.mark.hypothesis
def test_an_elastic_job_with_any_faults_keeps_its_limits_and_ends() -> None:
    run_jobs(choose_example_count(30, share=6), AnyFaultsOfElasticJobs)


@pytest.mark.long
def test_many_jobs_restart_within_their_budgets_and_end() -> None:
    run_jobs(150)
