"""Texts of agents' reports take a limited amount of the operator's memory. Each namespace has its own share."""

import tracemalloc
from dataclasses import replace

from muster.collector.memory_limits import MemoryLimits
from muster.collector.pod_directory import PodIdentity
from muster.collector.store import RankStore
from muster.core.reports.check import JobShape
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
        for node in range(20):
            for sequence in (1, 2):
                store.record_report(
                    PodIdentity(f"evil-{number}", node, 0), report(f"evil-{number}", node, sequence), 100.0
                )
    used_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # Without the limit the texts take 60 MiB. The other values take 4 MiB.
    assert used_bytes < 16 * MIB
    last = store.get_agent("evil-0", 19)
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


def test_deleted_reports_take_no_memory() -> None:
    shares = MemoryLimits(per_namespace=4 * MIB, total=8 * MIB, guaranteed=0)
    store, shape = RankStore(shares), JobShape("good", 2, PROCS, 0.0, "team")
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
