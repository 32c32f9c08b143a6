"""Agents' reports take a limited amount of the operator's memory. Each namespace has its own share."""

import tracemalloc
from dataclasses import replace

import pytest

from muster.collector.agent_memory import AgentMemory, NoMemory
from muster.collector.memory_limits import MemoryLimits
from muster.collector.pod_directory import PodIdentity
from muster.collector.store import RankStore
from muster.core.reports.check import JobShape
from muster.core.reports.merge import merge_report
from muster.core.reports.texts import RANK_BYTES, measure_facts
from muster_worker.contract import wire
from muster_worker.contract.schema import AgentPhase, RankReport, RankState, Report

MIB = 1024 * 1024
PROCS = 64


def report(job: str, node: int, sequence: int = 1) -> Report:
    """Return a report of a node whose ranks have all failed, with texts of the maximum size."""
    ranks = tuple(
        RankReport(
            rank=node * PROCS + local,
            local_rank=local,
            state=RankState.EXITED,
            exit_code=3,
            ended_age=1.0,
            last_lines=tuple(f"{job}{node}{sequence}{local}{line}\U0001f600".ljust(512, "x") for line in range(8)),
        )
        for local in range(PROCS)
    )
    return Report(
        job_uid=job, node=node, replacement=0, attempt=1, sequence=sequence, phase=AgentPhase.RUNNING, ranks=ranks
    )


def new_store() -> RankStore:
    store = RankStore(MemoryLimits(per_namespace=4 * MIB, total=8 * MIB, guaranteed=2 * MIB))
    for number in range(3):
        store.register_job(JobShape(f"evil-{number}", 20, PROCS, 0.0, f"evil-{number}"))
    store.register_job(JobShape("good", 1, PROCS, 0.0, "team"))
    return store


def test_many_texts_of_many_pods_take_limited_memory() -> None:
    store = new_store()
    tracemalloc.start()
    for number in range(3):
        for node in range(5):
            for sequence in (1, 2):
                store.record_report(
                    PodIdentity(f"evil-{number}", node, 0), report(f"evil-{number}", node, sequence), 100.0
                )
    used_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # Without the limit the texts take 15 MiB. The other values take 1 MiB.
    assert used_bytes < 11 * MIB
    last = store.get_agent("evil-0", 4)
    assert last is not None
    assert {(entry.report.exit_code, entry.report.last_lines) for entry in last.ranks} == {(3, ())}


def test_a_namespace_keeps_its_texts_while_others_exceed_their_share() -> None:
    store = new_store()
    for number in range(3):
        for node in range(20):
            store.record_report(PodIdentity(f"evil-{number}", node, 0), report(f"evil-{number}", node), 100.0)
    store.record_report(PodIdentity("good", 0, 0), report("good", 0), 100.0)
    facts_of_agent = store.get_agent("good", 0)
    assert facts_of_agent is not None
    assert all(len(entry.report.last_lines) == 8 for entry in facts_of_agent.ranks)


@pytest.mark.parametrize("limited", ["text_limits", "fact_limits"])
def test_deleted_reports_take_no_memory(limited: str) -> None:
    shares = MemoryLimits(per_namespace=4 * MIB, total=8 * MIB, guaranteed=0)
    store, shape = RankStore(**{limited: shares}), JobShape("good", 2, PROCS, 0.0, "team")
    store.register_job(shape)
    for node in range(2):
        store.record_report(PodIdentity("good", node, 0), report("good", node), 100.0)
    assert len(shares.get_keys()) == 2
    store.reset_node("good", 0)
    assert len(shares.get_keys()) == 1
    store.register_job(replace(shape, nodes=1))
    assert shares.get_keys() == ()
    store.record_report(PodIdentity("good", 0, 0), report("good", 0), 100.0)
    store.remove_job("good")
    assert shares.get_keys() == ()


def test_the_phases_of_many_ranks_take_limited_memory() -> None:
    store = RankStore(MemoryLimits(per_namespace=PROCS * 256, total=8 * MIB, guaranteed=0))
    store.register_job(JobShape("evil", 1, PROCS, 0.0, "evil"))
    ranks = tuple(
        RankReport(rank, rank, RankState.RUNNING, phase=f"{rank}\U0001f600".ljust(256, "x")) for rank in range(PROCS)
    )
    store.record_report(PodIdentity("evil", 0, 0), Report("evil", 0, 0, 1, 1, AgentPhase.RUNNING, ranks=ranks), 100.0)
    stored = store.get_agent("evil", 0)
    assert stored is not None
    # The phase is shortened and not dropped: muster reports no hang of a rank that is in a phase.
    assert {len(entry.report.phase or "") for entry in stored.ranks} == {64}


def running_ranks(job: str, node: int, sequence: int = 1) -> Report:
    """Return a report of a node whose ranks send all numbers, and no texts."""
    ranks = tuple(
        RankReport(
            rank=node * PROCS + local,
            local_rank=local,
            state=RankState.RUNNING,
            pid=10_000 + node * PROCS + local,
            started_age=1.0 + local,
            step=1_000 * sequence + local,
            step_age=0.5 + local,
            first_step_age=0.75 + local,
            rss_bytes=10**9 + local,
            busy_seconds=0.25 + local,
        )
        for local in range(PROCS)
    )
    report_bytes = wire.encode(Report(job, node, 0, 1, sequence, AgentPhase.RUNNING, ranks=ranks))
    return wire.decode(Report, report_bytes)  # no value is shared with another report


def test_ranks_without_texts_take_limited_memory_too() -> None:
    """A pod need not run to report: with its token, a tenant can do it."""
    store = RankStore(fact_limits=MemoryLimits(per_namespace=MIB, total=2 * MIB, guaranteed=MIB // 4))
    for name in ("evil", "good"):
        store.register_job(JobShape(name, 1_000, PROCS, 0.0, name))
    refused = 0
    tracemalloc.start()
    for node in range(50):
        try:
            store.record_report(PodIdentity("evil", node, 0), running_ranks("evil", node), 100.0)
        except NoMemory:
            refused += 1
    used_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # Without the limit the facts take 2.5 MiB.
    assert 0.75 * MIB < used_bytes < 1.25 * MIB
    assert refused > 25
    store.record_report(PodIdentity("good", 0, 0), running_ranks("good", 0), 100.0)


def test_an_agent_whose_report_is_refused_keeps_its_memory_and_its_facts() -> None:
    one_rank = measure_facts(merge_report(None, replace(running_ranks("job", 0), ranks=()), 0.0)) + 2 * RANK_BYTES
    limits = MemoryLimits(per_namespace=one_rank, total=one_rank, guaranteed=0)
    store = RankStore(fact_limits=limits)
    store.register_job(JobShape("job", 2, PROCS, 0.0, "team"))
    first = running_ranks("job", 0)
    store.record_report(PodIdentity("job", 0, 0), replace(first, ranks=first.ranks[:1]), 100.0)
    used_bytes = limits.get_used("team")
    with pytest.raises(NoMemory):
        store.record_report(PodIdentity("job", 0, 0), running_ranks("job", 0, 2), 101.0)
    with pytest.raises(NoMemory):
        store.record_report(PodIdentity("job", 1, 0), running_ranks("job", 1), 101.0)
    agent = store.get_agent("job", 0)
    assert agent is not None
    assert (len(agent.ranks), agent.last_report_at, limits.get_used("team")) == (1, 101.0, used_bytes)
    assert store.count_agents("team") == 1


def test_the_largest_job_fits() -> None:
    """The limits are for 100,000 ranks on 10,000 nodes, and for an ordinary job beside others that use all memory."""
    agent = merge_report(None, running_ranks("job", 0), 0.0)
    without_ranks = measure_facts(replace(agent, ranks=(), report=replace(agent.report, ranks=())))
    memory, ordinary = AgentMemory(None, None), 2 * measure_facts(agent)
    assert 10_000 * without_ranks + 100_000 * RANK_BYTES + ordinary < memory.facts.per_namespace
    assert ordinary < memory.facts.guaranteed
