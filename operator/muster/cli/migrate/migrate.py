"""Run `muster migrate`: list another operator's training jobs, and what each would become. It changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import typer

from muster.api.document import Document
from muster.api.json_fields import read_mapping, read_string
from muster.cli.errors import BadInput
from muster.cli.jobs.cluster import run_with_client
from muster.cli.migrate.table import MigratedJob, format_table
from muster.clients.kubernetes.client import Client
from muster.importers.kubernetes.kinds.registry import IMPORTERS, RUNTIME_GROUP, RUNTIME_PLURALS
from muster.importers.kubernetes.manifests import import_manifests
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import Kind, Object

_NOT_IMPORTED = 1
_RUNTIME_VERSION = "v1alpha1"

_GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "kubeflow": ("kubeflow.org", "trainer.kubeflow.org"),
        "jobset": ("jobset.x-k8s.io",),
        "volcano": ("batch.volcano.sh",),
    }
)
"""The API groups of each operator."""


def list_jobs(source: str, namespace: str | None, *, all_namespaces: bool) -> int:
    """Print the jobs of an operator; return the exit code. Raises `BadInput`."""
    groups = _GROUPS.get(source)
    if groups is None:
        raise BadInput(f"--from {source}: expected {', '.join(_GROUPS)}")

    async def work(client: Client, own_namespace: str) -> int:
        place = None if all_namespaces else own_namespace
        jobs = await _find_jobs(client, groups, place)
        if not jobs:
            kinds = ", ".join(kind for group, kind in IMPORTERS if group in groups)
            typer.echo(f"{place or 'all namespaces'}: found none of {kinds}", err=True)
            return 0
        typer.echo(format_table(jobs), nl=False)
        return _NOT_IMPORTED if any(job.result.problems for job in jobs) else 0

    return run_with_client(namespace, work)


async def _find_jobs(client: Client, groups: Sequence[str], namespace: str | None) -> list[MigratedJob]:
    jobs: list[MigratedJob] = []
    runtimes = await _list_runtimes(client, namespace) if RUNTIME_GROUP in groups else []
    for (group, kind), importer in IMPORTERS.items():
        if group in groups:
            kinds = [Kind(group, version, importer.plural, kind) for version in reversed(importer.versions)]
            jobs += [_convert(item, kind, runtimes) for item in await _list_first(client, kinds, namespace)]
    return sorted(jobs, key=lambda job: (job.namespace, job.kind, job.name))


async def _list_runtimes(client: Client, namespace: str | None) -> list[Object]:
    runtimes: list[Object] = []
    for name, plural in RUNTIME_PLURALS.items():
        place = None if name.startswith("Cluster") else namespace
        runtimes += await _list_first(client, [Kind(RUNTIME_GROUP, _RUNTIME_VERSION, plural, name)], place)
    return runtimes


async def _list_first(client: Client, kinds: Sequence[Kind], namespace: str | None) -> Sequence[Object]:
    """Return the objects of the first kind that the cluster knows."""
    for kind in kinds:
        try:
            return (await client.list(kind, namespace)).items
        except ApiError as error:
            if not error.is_not_found:
                raise
    return ()


def _convert(item: Object, kind: str, runtimes: Sequence[Object]) -> MigratedJob:
    namespace, name = _read_metadata(item, "namespace"), _read_metadata(item, "name")
    known_runtimes = [
        Document(dict(runtime), f"{runtime.get('kind')} {_read_metadata(runtime, 'name')}")
        for runtime in runtimes
        if _read_metadata(runtime, "namespace") in ("", namespace)
    ]
    result = import_manifests([Document(dict(item), f"{kind} {namespace}/{name}")], known_runtimes)
    return MigratedJob(namespace, kind, name, result)


def _read_metadata(item: Object, field: str) -> str:
    return read_string(read_mapping(item.get("metadata")).get(field))
