"""`muster run --on cluster`: create a job on the kubeconfig's cluster, and show it until it has ended."""

from __future__ import annotations

from muster.api.json_fields import read_mapping, read_string
from muster.cli.cluster_run.attached_run import AttachedRun
from muster.cli.cluster_run.manifest import Manifest, read_manifest
from muster.cli.cluster_run.options import ClusterRunOptions
from muster.cli.cluster_run.submission import describe_created, is_suspended_by_spec, submit
from muster.cli.display import Display, open_stderr_display
from muster.cli.errors import BadInput
from muster.cli.jobs.api_problems import explain_api_error
from muster.cli.jobs.cluster import ClusterJob, run_with_client
from muster.cli.jobs.job_reference import JobReference, check_names
from muster.cli.jobs.wait import print_job
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError


def run_on_cluster(options: ClusterRunOptions) -> int:
    """Create and show the job; return the exit code: 0 only if it completes, or is created with --detach.

    Raises `BadInput`.
    """
    manifest = read_manifest(options)
    check_names(JobReference(manifest.name, manifest.namespace))
    display = open_stderr_display()
    for note in manifest.notes:
        display.show_note(note)

    async def work(client: Client, namespace: str) -> int:
        target = ClusterJob(client, namespace, manifest.name)
        try:
            return await _run(target, manifest, options, display)
        except ApiError as error:
            raise BadInput(explain_api_error(error, namespace, manifest.name)) from None

    return run_with_client(manifest.namespace, work)


async def _run(target: ClusterJob, manifest: Manifest, options: ClusterRunOptions, display: Display) -> int:
    created = await submit(target, manifest, options, display)
    if options.detaches or is_suspended_by_spec(created):
        display.show_note(describe_created(created, target))
        return 0
    display.show_note(f"{target} is created; Ctrl-C suspends it")
    uid = read_string(read_mapping(created.get("metadata")).get("uid"))
    run = AttachedRun(target, uid, display, options, has_pods=manifest.job.spec.traits.has_collector)
    code = await run.run()
    if run.observed_job is not None:
        print_job(run.observed_job, options.output)
    return code
