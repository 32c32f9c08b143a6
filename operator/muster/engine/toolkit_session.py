"""Run a SageMaker training job on this machine: the container toolkit executes its request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.launch import get_rank_instance_type
from muster.api.timestamps import parse_timestamp
from muster.backends.local.folders import Folders, link_channels
from muster.backends.local.hosts import render_hosts_file
from muster.backends.local.layout import RunLayout, make_folders
from muster.backends.local.log_tail import LineReader
from muster.backends.local.process_tree import kill_marked
from muster.backends.local.processes import AgentProcesses
from muster.backends.local.session import Machine
from muster.backends.local.toolkit.backend import ToolkitBackend
from muster.backends.local.toolkit.host import (
    CodeFile,
    Training,
    TrainingPlaces,
    build_host_environment,
    make_hosts,
)
from muster.backends.local.toolkit.metrics import OutputMetrics
from muster.core.facts import AgentFacts
from muster.core.training_job.hosts import list_host_names
from muster.core.world import get_procs_per_node
from muster.diagnose.sagemaker.rank_log import LogLine, RankGroup, RankLog
from muster.render.sagemaker.rank_reports import can_ranks_report
from muster.render.sagemaker.request.training_request import TrainingRequest
from muster_worker.contract.log_line import MARK

ATTEMPT = 1
HOMOGENEOUS = "homogeneousCluster"
"""The name of the only instance group (sagemaker-training 5.1.4, environment.py)."""

PYTORCH_MODULE = "sagemaker_pytorch_container.training:main"
"""The value of SAGEMAKER_TRAINING_MODULE in PyTorch's and Hugging Face's images."""


@dataclass(frozen=True)
class ToolkitSession:
    """An open run: its backend, and an event for changes."""

    backend: ToolkitBackend
    change_event: asyncio.Event


@dataclass(frozen=True)
class ToolkitRun:
    """The job, its request and folders, and the Python with the toolkit."""

    job: Job
    training: Training
    layout: RunLayout
    machine: Machine
    folders: Folders
    python: str


def build_training(job: Job, request: TrainingRequest, code: Mapping[str, CodeFile]) -> Training:
    """Build the containers' input from a request. `code` are the job's own files; the request may add files."""
    block = get_sagemaker_block(job.spec)
    added_files = {} if request.archive is None else request.archive.files
    variables = request.body.get("Environment")
    return Training(
        hosts=list_host_names(job.spec.nodes),
        group=next((group.name for group in block.instance_groups), HOMOGENEOUS),
        instance_type=get_rank_instance_type(block) or "local",
        hyperparameters=request.hyperparameters,
        channels=_build_channels(request.body.get("InputDataConfig")),
        environment={name: str(value) for name, value in variables.items()} if isinstance(variables, dict) else {},
        code={**code, **{path: CodeFile(content) for path, content in added_files.items()}},
        module=find_framework_module(job),
    )


def find_framework_module(job: Job) -> str:
    """Return the framework's module for the toolkit, as MODULE:FUNCTION; "" without one."""
    framework = job.spec.sagemaker.framework if job.spec.sagemaker is not None else None
    return PYTORCH_MODULE if framework is not None and framework.name != "TensorFlow" else ""


@asynccontextmanager
async def open_toolkit(
    run: ToolkitRun, *, reader: LineReader, clock: Callable[[], float]
) -> AsyncIterator[ToolkitSession]:
    """Create the run's folders, and open a session. On exit, end all remaining processes.

    `clock` returns Unix seconds. Raises `OSError` if folders or files can't be created.
    """
    job, layout = run.job, run.layout
    _create_folders(run)
    changed, log, metrics = asyncio.Event(), RankLog(_build_rank_group(job)), OutputMetrics(job)

    def handle_line(node: int, text: str) -> None:
        now = clock()
        is_report = log.feed([LogLine(run.training.hosts[node], now, text)])
        if metrics.feed(node, now, text) or is_report:
            changed.set()
        # The board shows the contents of report lines in its own form.
        if MARK not in text:
            reader.on_line(node, text)

    processes = AgentProcesses(clock, LineReader(handle_line), changed.set)
    backend = ToolkitBackend(
        job=job,
        layout=layout,
        hosts=run.training.hosts,
        python=run.python,
        environment=build_host_environment(run.training, TrainingPlaces(layout.private), run.machine.environment),
        processes=processes,
        get_agents=lambda: _group_by_node(log.list_agents()),
        read_metrics=metrics.get_metrics,
        has_reports=can_ranks_report(job),
        clock=clock,
    )
    try:
        yield ToolkitSession(backend, changed)
    finally:
        await processes.close()
        kill_marked(f"MUSTER_RUN_DIR={layout.private}/".encode())


def _create_folders(run: ToolkitRun) -> None:
    metadata, nodes, layout = run.job.metadata, run.job.spec.nodes, run.layout
    make_folders(layout, nodes, run.folders.checkpoints)
    link_channels(layout, nodes, run.folders)
    make_hosts(
        run.training, layout, render_hosts_file(metadata.uid, metadata.name, nodes, run.machine.hosts), run.python
    )


def _build_rank_group(job: Job) -> RankGroup:
    return RankGroup(
        job_uid=job.metadata.uid,
        attempt=ATTEMPT,
        nodes=job.spec.nodes,
        procs_per_node=get_procs_per_node(job),
        created_at=parse_timestamp(job.metadata.creation_timestamp),
        has_launcher=True,
    )


def _group_by_node(agents: tuple[AgentFacts, ...]) -> Mapping[int, AgentFacts]:
    return {agent.report.node: agent for agent in agents}


def _build_channels(config: JSON) -> dict[str, dict[str, str]]:
    """Build inputdataconfig.json: see "How SageMaker AI Provides Training Information" in its developer guide."""
    result = {}
    for channel in config if isinstance(config, list) else []:
        if not isinstance(channel, dict):
            continue
        source = channel.get("DataSource")
        s3 = source.get("S3DataSource") if isinstance(source, dict) else None
        distribution = s3.get("S3DataDistributionType") if isinstance(s3, dict) else None
        entry = {
            "TrainingInputMode": str(channel.get("InputMode", "File")),
            "S3DistributionType": str(distribution or "FullyReplicated"),
            "RecordWrapperType": "None",
        }
        if "ContentType" in channel:
            entry["ContentType"] = str(channel["ContentType"])
        result[str(channel["ChannelName"])] = entry
    return result
