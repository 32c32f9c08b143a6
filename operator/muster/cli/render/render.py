"""Format a job's objects and commands as text for `muster render`, without a cluster. Pure."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from muster.api.document import JSON, escape_unprintable
from muster.api.field_problems import InvalidResource
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.api.yaml.serialise import serialise_resource, to_yaml
from muster.cli.config_file import apply_config
from muster.cli.explain.launch_preview import preview_launch
from muster.cli.render.placeholders import PLACEHOLDERS, simulate_apply
from muster.core.status.rank_ranges import format_ranges
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.names import ARCHIVE_KEY, build_agent_name
from muster.render.agent_plan import render_plan
from muster.render.kubernetes.devices import resolve_procs_per_node
from muster.render.kubernetes.gang import render_pod_group
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.not_renderable import NotRenderable
from muster.render.kubernetes.render import render_agent_config_map, render_config_map, render_pod, render_service
from muster.render.kubernetes.user_patches import group_equal_nodes
from muster_worker.contract.schema import Plan
from muster_worker.launchers.registry import find_launcher

if TYPE_CHECKING:
    from muster.api.config.operator import OperatorConfig
    from muster.render.kubernetes.pod_settings import PodSettings


def render_text(job: Job, archive: bytes, config: OperatorConfig | None = None) -> str:
    """Return YAML documents: the job with its defaults, its Service, ConfigMaps and PodGroup, and its pods.

    A comment above each pod shows the agent's command. Nodes that differ only in their rank share one pod. Values
    that are unknown outside the cluster are in capitals. `archive` contains the agent. `config` is None if the
    operator's configuration is unknown.
    """
    job_text = to_yaml(serialise_resource(job))
    try:
        applied_job = resolve_procs_per_node(simulate_apply(apply_config(job, config)))
    except InvalidResource as invalid:
        return f"{job_text}---\n" + "".join(
            f"# a cluster can't run this job yet: {problem}\n" for problem in invalid.problems
        )
    plan = render_plan(applied_job, PLACEHOLDERS.collector_url, "CERTIFICATE")
    pod_settings = replace(PLACEHOLDERS, agent_config_map=build_agent_name(archive))
    parts = [
        job_text,
        to_yaml(dict(render_service(applied_job))),
        _format_config_map(render_config_map(applied_job, plan)),
        _format_agent_config_map(render_agent_config_map(applied_job, pod_settings.agent_config_map, archive), archive),
    ]
    group = render_pod_group(applied_job)
    if group is not None:
        parts.append(to_yaml(dict(group.body)))
    parts += [_format_nodes(applied_job, plan, nodes, pod_settings) for nodes in group_equal_nodes(applied_job)]
    return "---\n".join(parts)


def _format_config_map(child: Object) -> str:
    data: Fields = {name: _indent_json(str(text)) for name, text in read_mapping(child["data"]).items()}
    return to_yaml({**child, "data": data})


def _format_agent_config_map(child: Object, archive: bytes) -> str:
    summary = f"{len(archive)} bytes, sha256 {hashlib.sha256(archive).hexdigest()}"
    return to_yaml({**child, "binaryData": {ARCHIVE_KEY: summary}})


def _indent_json(text: str) -> str:
    value: JSON = json.loads(text)
    return json.dumps(value, indent=2) + "\n"


def _format_nodes(job: Job, plan: Plan, nodes: tuple[int, ...], pod_settings: PodSettings) -> str:
    preview = preview_launch(job, plan, nodes[0])
    command = (
        f"$ {shlex.join(preview.command)}" if preview.command else "mpirun on node 0 starts the ranks of this node"
    )
    lines = [*_make_titles(plan, nodes), command]
    lines += [f"  {name}={value}" for name, value in sorted(preview.environment.items())]
    return "".join(f"# {escape_unprintable(line)}\n" for line in lines) + _format_pod(job, nodes[0], pod_settings)


def _format_pod(job: Job, node: int, pod_settings: PodSettings) -> str:
    try:
        return to_yaml(dict(render_pod(job, node, 0, pod_settings)))
    except NotRenderable as error:
        return f"# no pod: {escape_unprintable(str(error))}\n"


def _make_titles(plan: Plan, nodes: tuple[int, ...]) -> list[str]:
    first = nodes[0]
    titles = [f"node {first}: algo-{first + 1}, {_describe_ranks(plan, first)}"]
    if len(nodes) > 1:
        program = find_launcher(plan.launcher).program_of_first_node
        difference = f" and in node 0's {program}" if program and first == 0 else ""
        titles.insert(0, f"nodes {format_ranges(nodes)}, which differ only in their rank{difference}; the first one:")
    return titles


def _describe_ranks(plan: Plan, node: int) -> str:
    first = node * plan.procs_per_node
    if plan.procs_per_node == 1:
        return f"rank {first}"
    starts_each_rank = find_launcher(plan.launcher).starts_each_rank
    note = " (rank by rank; the first one's environment is shown)" if starts_each_rank else ""
    return f"ranks {first} to {first + plan.procs_per_node - 1}{note}"
