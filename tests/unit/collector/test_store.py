import asyncio
from dataclasses import replace

import pytest

from muster.collector.agent_memory import NoMemory
from muster.collector.heartbeat import MIN_HEARTBEAT_SECONDS, compute_heartbeat_seconds
from muster.collector.memory_limits import MemoryLimits, ObjectSize
from muster.collector.pod_directory import PodIdentity
from muster.collector.store import RankStore, UnknownJob
from muster.core.reports.check import ImplausibleReport, JobShape
from muster.core.reports.merge import merge_report
from muster.core.reports.texts import measure_facts
from muster_worker.contract.schema import Command, CommandKind
from muster_worker.contract.source import EditedSource
from unit.core.reports.rank_reports import SHAPE, T0, UID, report, running_rank

MEMBER = PodIdentity(UID, 0, 0)


def registered() -> RankStore:
    store = RankStore()
    store.register_job(SHAPE)
    return store


def test_an_implausible_report_changes_nothing() -> None:
    store = registered()
    store.record_report(MEMBER, report(1, running_rank(0)), T0)
    before = store.get_agent(UID, 0)
    store.get_change_event(UID).clear()

    with pytest.raises(ImplausibleReport):
        store.record_report(MEMBER, report(2, running_rank(5)), T0)

    assert store.get_agent(UID, 0) == before
    assert not store.get_change_event(UID).is_set()


def test_the_same_report_again_is_no_news() -> None:
    store = registered()
    store.record_report(MEMBER, report(1, running_rank(0)), T0)
    store.get_change_event(UID).clear()

    store.record_report(MEMBER, report(1, running_rank(0)), T0)

    assert not store.get_change_event(UID).is_set()


def test_registering_again_keeps_what_is_known_unless_the_shape_changed() -> None:
    store = registered()
    store.record_report(MEMBER, report(1, running_rank(0)), T0)

    store.register_job(SHAPE)
    assert store.get_agent(UID, 0) is not None
    assert store.count_agents("") == 1

    store.register_job(replace(SHAPE, nodes=2))
    assert store.get_agent(UID, 0) is None
    assert store.count_agents("") == 0


def test_an_elastic_job_is_scaled_without_losing_its_reports_and_only_its_agents_count() -> None:
    store, shape = RankStore(), replace(SHAPE, nodes=10_000, has_fixed_ranks=False, agents=3)
    store.register_job(shape)
    for node in range(3):
        store.record_report(PodIdentity(UID, node, 0), replace(report(1), node=node), T0)
    assert store.count_agents("") == 3

    store.register_job(replace(shape, agents=2))
    assert store.get_agent(UID, 2) is not None
    assert store.count_agents("") == 2
    store.register_job(shape)
    assert store.count_agents("") == 3
    store.reset_node(UID, 1)
    assert store.count_agents("") == 2
    store.remove_job(UID)
    assert store.count_agents("") == 0


def test_a_pod_stores_only_the_ranks_of_the_node_rank_that_it_reported_last() -> None:
    store, shape = RankStore(), replace(SHAPE, nodes=100, has_fixed_ranks=False)
    store.register_job(shape)
    for node_rank in range(100):
        first, second = 2 * node_rank, 2 * node_rank + 1
        # A node's ranks may come one after the other.
        store.record_report(MEMBER, report(2 * node_rank + 1, running_rank(first)), T0)
        store.record_report(MEMBER, report(2 * node_rank + 2, running_rank(second)), T0)
        agent = store.get_agent(UID, 0)
        assert agent is not None
        assert [rank.report.rank for rank in agent.ranks] == [first, second]


def test_an_old_report_of_another_attempt_drops_no_rank() -> None:
    store = RankStore()
    store.register_job(replace(SHAPE, nodes=100, has_fixed_ranks=False))
    store.record_report(MEMBER, report(1, running_rank(4), attempt=2), T0)
    store.record_report(MEMBER, report(9, running_rank(0), attempt=1), T0)
    agent = store.get_agent(UID, 0)
    assert agent is not None
    assert [rank.report.rank for rank in agent.ranks] == [4]


def test_a_job_without_pods_changes_no_interval() -> None:
    store = registered()
    before = store.record_report(MEMBER, report(1), T0)

    store.register_job(JobShape("huge", 10_000, 2, T0))
    store.set_command("huge", 0, Command(0, "huge", 1, CommandKind.EXIT))

    assert store.record_report(MEMBER, report(2), T0 + 1) == before == MIN_HEARTBEAT_SECONDS


def add_large_job(store: RankStore) -> None:
    """Register a job of 2,000 agents that have reported, so that the interval of all agents is long."""
    store.register_job(JobShape("large", 2_000, 2, T0))
    for node in range(2_000):
        store.record_report(PodIdentity("large", node, 0), replace(report(1), job_uid="large", node=node), T0)


def test_a_large_namespace_lengthens_no_other_namespaces_interval() -> None:
    store = registered()
    store.register_job(JobShape("large", 2_000, 2, T0, "crowd"))
    for node in range(2_000):
        store.record_report(PodIdentity("large", node, 0), replace(report(1), job_uid="large", node=node), T0)
    assert store.record_report(MEMBER, report(1), T0) == MIN_HEARTBEAT_SECONDS
    # The report of the other namespace's only agent is the 250th of a second.
    assert store.get_heartbeat_seconds("crowd") == compute_heartbeat_seconds(2_000, 249.0)

    store.remove_job(UID)

    assert store.get_heartbeat_seconds("crowd") == compute_heartbeat_seconds(2_000)


def test_an_agent_keeps_the_interval_that_it_was_told_until_its_next_report() -> None:
    store = registered()
    add_large_job(store)
    interval = store.record_report(MEMBER, report(1), T0)
    assert interval == compute_heartbeat_seconds(2_001)

    store.remove_job("large")

    agent = store.get_agent(UID, 0)
    assert agent is not None
    assert agent.heartbeat_seconds == interval
    assert store.record_report(MEMBER, report(2), T0 + interval) == MIN_HEARTBEAT_SECONDS


def test_a_report_after_the_told_interval_is_mere_progress_though_the_interval_is_shorter_now() -> None:
    store = registered()
    add_large_job(store)
    interval = store.record_report(MEMBER, report(1), T0)
    store.remove_job("large")
    store.clear_state_change(UID)

    store.record_report(MEMBER, report(2), T0 + interval)

    assert not store.has_state_change(UID)


def test_an_agent_whose_report_finds_no_memory_is_alive_and_keeps_its_share() -> None:
    size = measure_facts(merge_report(None, report(1, running_rank(0)), T0))
    limits = MemoryLimits(per_namespace=2 * size, total=2 * size, guaranteed=0)
    store, rank = RankStore(fact_limits=limits), running_rank(0)
    store.register_job(SHAPE)
    store.record_report(MEMBER, report(1, rank), T0)
    # Another namespace takes the rest, and a little more than the total.
    limits.total = 3 * size
    assert limits.reserve("others", ObjectSize("other", 2 * size))
    limits.total = 2 * size

    with pytest.raises(NoMemory):
        store.record_report(MEMBER, report(2, rank, running_rank(1)), T0 + 5)
    agent = store.get_agent(UID, 0)
    assert agent is not None
    assert (agent.last_report_at, [entry.report.rank for entry in agent.ranks]) == (T0 + 5, [0])

    # A report of the same size needs no more memory.
    store.record_report(MEMBER, report(3, rank), T0 + 10)
    agent = store.get_agent(UID, 0)
    assert agent is not None
    assert agent.last_report_at == T0 + 10


def test_a_job_that_is_forgotten_is_unknown() -> None:
    store = registered()
    store.record_report(MEMBER, report(1), T0)
    store.remove_job(UID)
    store.remove_job(UID)

    assert store.get_agent(UID, 0) is None
    with pytest.raises(UnknownJob):
        store.record_report(MEMBER, report(2), T0)
    with pytest.raises(UnknownJob):
        store.set_command(UID, 0, Command(0, UID, 1, CommandKind.START))


async def test_who_waits_for_a_command_of_a_forgotten_job_is_let_go() -> None:
    store = registered()
    waiting = asyncio.create_task(store.wait_for_command(UID, 0, None))
    await asyncio.sleep(0)

    store.remove_job(UID)

    with pytest.raises(UnknownJob):
        await waiting


async def test_a_new_pod_of_a_node_inherits_nothing_of_the_old_one() -> None:
    store = registered()
    store.record_report(MEMBER, report(1, running_rank(0)), T0)
    leave = Command(0, UID, 1, CommandKind.EXIT)
    store.set_command(UID, 0, leave)
    store.set_command(UID, 1, leave)
    of_the_old_pod = asyncio.create_task(store.wait_for_command(UID, 0, leave.order))
    await asyncio.sleep(0)

    store.reset_node(UID, 0)
    start = Command(0, UID, 1, CommandKind.START)
    store.set_command(UID, 0, start)

    assert store.get_agent(UID, 0) is None
    assert store.get_command(UID, 0, None) == start
    assert store.get_command(UID, 1, None) == leave
    with pytest.raises(UnknownJob):
        await of_the_old_pod


def test_replacing_a_pod_of_a_job_that_is_not_there_changes_nothing() -> None:
    store = RankStore()

    store.reset_node(UID, 0)

    assert store.count_agents("") == 0


async def test_who_follows_a_job_goes_on_when_it_is_scaled() -> None:
    store = registered()
    store.record_report(MEMBER, report(1, running_rank(0)), T0)
    changed = store.get_change_event(UID)
    of_the_third_node = asyncio.create_task(store.wait_for_command(UID, 2, None))
    await asyncio.sleep(0)

    store.register_job(replace(SHAPE, nodes=2))

    with pytest.raises(UnknownJob):
        await of_the_third_node
    with pytest.raises(UnknownJob, match="no such node"):
        await store.wait_for_command(UID, 2, None)
    changed.clear()
    store.record_report(MEMBER, report(1, running_rank(0)), T0)
    assert store.get_change_event(UID) is changed
    assert changed.is_set()


def test_nothing_is_left_of_a_cleared_store() -> None:
    store = registered()
    store.record_report(MEMBER, report(1, running_rank(0)), T0)

    store.clear()
    assert store.count_agents("") == 0

    store.register_job(SHAPE)
    assert store.get_agent(UID, 0) is None


async def test_a_command_not_above_the_requested_one_wakes_no_waiter() -> None:
    store = registered()
    waiting = asyncio.create_task(store.wait_for_command(UID, 0, (0, 1, 1)))
    await asyncio.sleep(0)
    store.set_command(UID, 0, Command(0, UID, 1, CommandKind.START))
    await asyncio.sleep(0)
    assert not waiting.done()

    kill = Command(0, UID, 1, CommandKind.KILL)
    store.set_command(UID, 0, kill)

    assert await waiting == kill


def test_another_jobs_command_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="another job"):
        registered().set_command(UID, 0, Command(0, "other", 1, CommandKind.START))


def test_a_node_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="nodes 0 to 2"):
        registered().set_command(UID, 3, Command(0, UID, 1, CommandKind.START))


def test_a_report_of_another_pod_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="does not belong to the pod"):
        registered().record_report(PodIdentity(UID, 1, 0), report(1), T0)


def start(attempt: int = 1, archive: str = "code") -> Command:
    return Command(1, UID, attempt, CommandKind.START, source=EditedSource("a" * 64, archive))


def test_code_that_follows_other_code_counts_although_not_all_nodes_have_dropped_the_first() -> None:
    store = RankStore(source_limits=MemoryLimits(per_namespace=10, total=10, guaranteed=1))
    store.register_job(SHAPE)
    assert all(store.set_command(UID, node, start(1, "x")) for node in range(2))
    large = Command(1, UID, 2, CommandKind.START, source=EditedSource("b" * 64, "x" * 11))
    assert not store.set_command(UID, 0, large)
    fitting = Command(1, UID, 2, CommandKind.START, source=EditedSource("c" * 64, "x" * 9))
    assert all(store.set_command(UID, node, fitting) for node in range(2))
    assert not store.set_command(UID, 0, replace(start(3), source=EditedSource("d" * 64, "x" * 5)))
    store.remove_job(UID)
    store.register_job(SHAPE)
    assert store.set_command(UID, 0, start(1, "x" * 10))


def source_in(store: RankStore, node: int) -> str | None:
    command = store.get_command(UID, node, None)
    return None if command is None or command.source is None else command.source.archive


def test_a_source_is_dropped_once_the_agent_has_begun_the_attempt() -> None:
    store = registered()
    for node in range(2):
        assert store.set_command(UID, node, start(2))
    store.record_report(MEMBER, replace(report(1), attempt=1), T0)
    assert [source_in(store, node) for node in range(2)] == ["code", "code"]
    store.record_report(MEMBER, replace(report(2, running_rank(0)), attempt=2), T0)
    assert [source_in(store, node) for node in range(2)] == ["", "code"]


def test_sources_have_a_memory_limit_that_other_commands_do_not_need() -> None:
    store = RankStore(source_limits=MemoryLimits(per_namespace=10, total=10, guaranteed=1))
    for uid in ("a", "b"):
        store.register_job(replace(SHAPE, job_uid=uid))

    def send(uid: str, command: Command, node: int = 0) -> bool:
        return store.set_command(uid, node, replace(command, job_uid=uid))

    assert all(send("a", start(archive="x" * 8), node) for node in range(3))
    assert not send("b", start(archive="x" * 8))
    assert store.get_command("b", 0, None) is None
    assert send("b", Command(1, UID, 1, CommandKind.START))
    # The last node of the first job gets another command, or is replaced.
    assert send("a", Command(1, UID, 1, CommandKind.STOP))
    store.reset_node("a", 1)
    assert not send("b", start(2, archive="x" * 8))
    assert send("a", Command(1, UID, 1, CommandKind.STOP), 2)
    assert send("b", start(2, archive="x" * 8))
    store.remove_job("b")
    assert send("a", start(2, archive="x" * 8))
