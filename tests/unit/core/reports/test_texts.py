"""Texts of agents' reports use a limited amount of the operator's memory; texts that explain a job's end are always
stored.
"""

import tracemalloc
from dataclasses import replace

from muster.collector.memory_shares import MemoryShares
from muster.collector.pod_directory import Member
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


def store() -> RankStore:
    found = RankStore(MemoryShares(per_namespace=4 * MIB, total=8 * MIB, floor=2 * MIB))
    for number in range(3):
        found.register(JobShape(f"evil-{number}", 20, PROCS, 0.0, f"evil-{number}"))
    found.register(JobShape("good", 1, PROCS, 0.0, "team"))
    return found


def test_many_words_of_many_pods_take_bounded_memory() -> None:
    here = store()
    tracemalloc.start()
    for number in range(3):
        for node in range(20):
            for sequence in (1, 2):
                here.record(Member(f"evil-{number}", node, 0), report(f"evil-{number}", node, sequence), 100.0)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # Without the limit it is 60 MiB. Other values take 4.
    assert held < 16 * MIB
    last = here.agent("evil-0", 19)
    assert last is not None
    assert {(one.report.exit_code, one.report.last_lines) for one in last.ranks} == {(3, ())}


def test_a_namespace_keeps_its_words_while_others_have_too_many() -> None:
    here = store()
    for number in range(3):
        for node in range(20):
            here.record(Member(f"evil-{number}", node, 0), report(f"evil-{number}", node), 100.0)
    here.record(Member("good", 0, 0), report("good", 0), 100.0)
    facts_of_agent = here.agent("good", 0)
    assert facts_of_agent is not None
    assert all(len(one.report.last_lines) == 8 for one in facts_of_agent.ranks)


def test_what_is_forgotten_takes_no_room() -> None:
    shares = MemoryShares(per_namespace=4 * MIB, total=8 * MIB, floor=0)
    here, shape = RankStore(shares), JobShape("good", 2, PROCS, 0.0, "team")
    here.register(shape)
    for node in range(2):
        here.record(Member("good", node, 0), report("good", node), 100.0)
    assert len(shares.keys()) == 2
    here.replace("good", 0)
    assert len(shares.keys()) == 1
    here.register(replace(shape, nodes=1))
    assert shares.keys() == ()
    here.record(Member("good", 0, 0), report("good", 0), 100.0)
    here.forget("good")
    assert shares.keys() == ()


def test_the_phases_of_many_ranks_take_bounded_memory() -> None:
    here = RankStore(MemoryShares(per_namespace=PROCS * 256, total=8 * MIB, floor=0))
    here.register(JobShape("evil", 1, PROCS, 0.0, "evil"))
    ranks = tuple(
        RankReport(rank, rank, RankState.RUNNING, phase=f"{rank}\U0001f600".ljust(256, "x")) for rank in range(PROCS)
    )
    here.record(Member("evil", 0, 0), Report("evil", 0, 0, 1, 1, AgentPhase.RUNNING, ranks=ranks), 100.0)
    stored = here.agent("evil", 0)
    assert stored is not None
    # A rank in a phase remains in it: no hang is looked for meanwhile.
    assert {len(one.report.phase or "") for one in stored.ranks} == {64}
