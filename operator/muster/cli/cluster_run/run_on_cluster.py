"""`muster run --on cluster`: create a job on the kubeconfig's cluster, and show it until it has ended."""

from __future__ import annotations

from muster.api.json_fields import read_mapping, read_string
from muster.cli.cluster_run.attached_run import AttachedRun
from muster.cli.cluster_run.cluster_template import lacks_template, merge_on_cluster
from muster.cli.cluster_run.manifest import Manifest, build_manifest, choose_namespace, complete_manifest
from muster.cli.cluster_run.options import ClusterRunOptions
from muster.cli.cluster_run.submission import describe_created, is_suspended_by_spec, submit
from muster.cli.display import open_stderr_display
from muster.cli.errors import BadInput
from muster.cli.job_file import JobFile, read_job_file
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
    job_file = read_job_file(options.file, options.template_files)
    # Problems in the file are reported without a connection, unless its template is on the cluster only.
    manifest = None if lacks_template(job_file) else build_manifest(options, job_file)
    resource = read_mapping(job_file.document.value)
    name = read_string(read_mapping(resource.get("metadata")).get("name"))
    reference = JobReference(name, choose_namespace(resource, options.namespace))
    check_names(reference)

    async def work(client: Client, namespace: str) -> int:
        try:
            target = ClusterJob(client, namespace, name)
            return await _run(target, manifest or await _merge_on_cluster(target, job_file, options), options)
        except ApiError as error:
            raise BadInput(explain_api_error(error, namespace, name)) from None

    return run_with_client(reference.namespace, work)


async def _merge_on_cluster(target: ClusterJob, job_file: JobFile, options: ClusterRunOptions) -> Manifest:
    job = await merge_on_cluster(target.client, target.namespace, job_file.document)
    return complete_manifest(options, job, job_file.document)


async def _run(target: ClusterJob, manifest: Manifest, options: ClusterRunOptions) -> int:
    display = open_stderr_display()
    for note in manifest.notes:
        display.show_note(note)
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
