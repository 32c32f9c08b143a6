"""Only the agents of a local gang get the gang's credentials."""

import secrets
from pathlib import Path

from muster.api.spec.job import Job
from muster.backends.local.backend import LocalBackend
from muster.backends.local.layout import RunLayout
from muster.backends.local.log_tail import LineReader
from muster.backends.local.processes import AgentProcesses
from muster.collector.store import RankStore
from muster.collector.trust.attempt_credentials import SEED_BYTES, derive_credentials
from muster.core.actions import SendCommand
from muster.core.reports.check import JobShape
from muster.core.world import get_procs_per_node
from muster_worker.contract.schema import CommandKind
from unit.core.builders import T0, UID, command, mpi_job

START = SendCommand((0, 1), command(CommandKind.START))


def backend(job: Job, folder: Path, seed: bytes) -> LocalBackend:
    store = RankStore()
    store.register_job(JobShape(UID, job.spec.nodes, get_procs_per_node(job), T0))
    return LocalBackend(
        job=job,
        layout=RunLayout(folder, folder, job.metadata.name),
        environments=[{} for _ in range(job.spec.nodes)],
        processes=AgentProcesses(lambda: T0, LineReader(lambda *_: None), lambda: None),
        store=store,
        write_token=lambda *_: None,
        clock=lambda: T0,
        heartbeat_seconds=5.0,
        seed=seed,
    )


async def test_start_brings_them_to_every_node_and_no_fact_has_them(tmp_path: Path) -> None:
    job, seed = mpi_job(), secrets.token_bytes(SEED_BYTES)
    local = backend(job, tmp_path, seed)

    await local.apply(job, [START])

    value = [local.store.get_command(UID, node, None) for node in range(2)]
    assert [entry.credentials for entry in value if entry is not None] == [derive_credentials(seed, UID, 1)] * 2
    facts = await local.observe(job)
    assert [node.command for node in facts.nodes] == [START.command] * 2
    assert "PRIVATE KEY" not in repr((facts, local, value))
    assert repr(seed) not in repr(local)
    await local.processes.close()
