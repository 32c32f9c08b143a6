"""Prepare a local run: create its folders, tokens and collector, and clean up at its end."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from muster.api.spec.job import Job
from muster.backends.local.agent_folder import write_agent_folder
from muster.backends.local.backend import LocalBackend
from muster.backends.local.devices import split_gpus
from muster.backends.local.environment import build_agent_environment
from muster.backends.local.folders import Folders, link_channels
from muster.backends.local.hosts import render_hosts_file
from muster.backends.local.layout import RunLayout, make_folders
from muster.backends.local.log_tail import LineReader
from muster.backends.local.process_tree import kill_marked
from muster.backends.local.processes import AgentProcesses
from muster.collector.collector import Collector
from muster.collector.heartbeat import compute_heartbeat_seconds
from muster.collector.pod_directory import PodIdentity
from muster.collector.store import RankStore
from muster.collector.trust.attempt_credentials import SEED_BYTES
from muster.collector.trust.certificate import issue_certificate
from muster.collector.trust.keys import read_keys
from muster.collector.trust.tokens import LocalTokenIssuer, PodClaim, TokenVerifier
from muster.core.membership.members import has_fixed_members
from muster.core.reports.check import JobShape
from muster.core.world import compute_world_size, count_nodes_and_spares, get_procs_per_node
from muster.render.agent_plan import render_plan
from muster_worker.contract import wire
from muster_worker.contract.schema import TOKEN_AUDIENCE

COLLECTOR_HOST = "127.0.0.1"
_ISSUER = "muster-run"
_RUN_SECONDS = 400 * 24 * 3600.0
"""The lifetime of the tokens and the certificate: longer than any run. Their keys exist only during the run."""


@dataclass(frozen=True)
class Machine:
    """This machine's environment variables, GPUs and cores, and the text of its hosts file."""

    environment: Mapping[str, str]
    gpus: tuple[str, ...]
    cores: int
    hosts: str


@dataclass
class _Tokens:
    """Creates the agents' tokens, and finds the agent that a token belongs to."""

    job: Job
    layout: RunLayout
    clock: Callable[[], float]
    issuer: LocalTokenIssuer = field(default_factory=lambda: LocalTokenIssuer(_ISSUER, TOKEN_AUDIENCE))
    _members: dict[str, PodIdentity] = field(default_factory=dict)

    def find(self, pod_uid: str) -> PodIdentity | None:
        """Return the node and the replacement number of the token's process."""
        return self._members.get(pod_uid)

    def write(self, node: int, replacement: int) -> None:
        """Create the token file of a node's agent process, readable by this user only."""
        uid = f"{self.job.metadata.uid}-{node}-{replacement}"
        self._members[uid] = PodIdentity(self.job.metadata.uid, node, replacement)
        claim = PodClaim(self.job.metadata.namespace, self.layout.get_node_name(node), uid)
        path = self.layout.get_node(node).token
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(self.issuer.issue(claim, self.clock(), _RUN_SECONDS))

    def make_verifier(self) -> TokenVerifier:
        return TokenVerifier(_ISSUER, TOKEN_AUDIENCE, read_keys(self.issuer.make_jwks()))


@dataclass(frozen=True)
class LocalSession:
    """The backend of a run, and the event that every change sets."""

    backend: LocalBackend
    change_event: asyncio.Event


@asynccontextmanager
async def open_session(
    job: Job, layout: RunLayout, *, machine: Machine, folders: Folders, reader: LineReader, clock: Callable[[], float]
) -> AsyncIterator[LocalSession]:
    """Create the run's folders and start its collector; at the end, kill all remaining processes.

    `clock` returns Unix seconds. Raises `OSError` if folders or files can't be created.
    """
    make_folders(layout, count_nodes_and_spares(job), folders.checkpoints)
    link_channels(layout, count_nodes_and_spares(job), folders)
    tokens, store = _Tokens(job, layout, clock), RankStore()
    has_fixed_ranks = has_fixed_members(job)
    store.register_job(
        JobShape(
            job.metadata.uid,
            count_nodes_and_spares(job),
            get_procs_per_node(job),
            clock(),
            has_fixed_ranks=has_fixed_ranks,
        )
    )
    changed = store.get_change_event(job.metadata.uid)
    certificate = issue_certificate([COLLECTOR_HOST], clock(), _RUN_SECONDS)
    collector = Collector(
        store=store, verifier=tokens.make_verifier(), directory=tokens, certificate=certificate, clock=clock
    )
    url = await collector.start(COLLECTOR_HOST)
    collector.start_leading(lambda: True)
    try:
        _write_files(job, layout, machine, url, certificate.authority)
        processes = AgentProcesses(clock, reader, changed.set)
        try:
            yield LocalSession(_make_backend(machine, processes, store, tokens), changed)
        finally:
            await processes.close()
            # Ranks keep running if their agent and its guardian were killed.
            kill_marked(f"MUSTER_RUN_DIR={layout.private}/".encode())
    finally:
        await collector.close()


def _make_backend(machine: Machine, processes: AgentProcesses, store: RankStore, tokens: _Tokens) -> LocalBackend:
    job = tokens.job
    world = compute_world_size(job)
    node_gpus = split_gpus(machine.gpus, count_nodes_and_spares(job))
    return LocalBackend(
        job=job,
        layout=tokens.layout,
        environments=[
            build_agent_environment(machine.environment, job, world, gpus, machine.cores) for gpus in node_gpus
        ],
        processes=processes,
        store=store,
        write_token=tokens.write,
        clock=tokens.clock,
        heartbeat_seconds=compute_heartbeat_seconds(count_nodes_and_spares(job)),
        seed=secrets.token_bytes(SEED_BYTES),
    )


def _write_files(job: Job, layout: RunLayout, machine: Machine, url: str, authority: str) -> None:
    write_agent_folder(layout.agent)
    # Nodes on one machine can't be cut off from each other.
    plan = replace(render_plan(job, url, authority), fence_seconds=0.0)
    layout.plan.write_bytes(wire.encode(plan))
    text = render_hosts_file(job.metadata.uid, job.metadata.name, count_nodes_and_spares(job), machine.hosts)
    layout.hosts.write_text(text, encoding="utf-8", errors="surrogateescape")
