"""Serve the board's page with the jobs of a cluster on this machine, until Ctrl-C."""

from __future__ import annotations

from muster.cli.jobs.cluster import run_with_client
from muster.cli.web.cluster_jobs import watch_jobs
from muster.cli.web.serve import serve_jobs
from muster.clients.kubernetes.client import Client


def serve_cluster(namespace: str | None, context: str | None, port: int, *, all_namespaces: bool) -> int:
    """Serve the jobs of a namespace of the kubeconfig's cluster, or of all; return the exit code. Raises `BadInput`."""

    async def serve(client: Client, own_namespace: str) -> int:
        async with watch_jobs(client, None if all_namespaces else own_namespace) as jobs:
            return await serve_jobs(jobs, port)

    return run_with_client(namespace, serve, context)
