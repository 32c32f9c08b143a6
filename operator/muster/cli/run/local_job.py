"""Prepare a job for a run on this machine."""

from __future__ import annotations

import os
import sys
import sysconfig
import uuid
from importlib.util import find_spec
from pathlib import Path

from muster.api.spec.job import Job
from muster.backends.local.devices import resolve_local_procs_per_node
from muster.backends.local.environment import PythonHome, inherit, put_python_on_path, resolve_variables
from muster.backends.local.layout import run_folder
from muster.backends.local.session import Machine
from muster.cli.display import Display
from muster.cli.options import RunOptions

SCRATCH = Path("/tmp")  # noqa: S108 - mpirun needs short socket paths without spaces; mkdtemp's folder is private


def set_uid(job: Job) -> Job:
    """Return the job with a new uid, as the API server would set it."""
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"uid": str(uuid.uuid4())})})


def resolve_job(job: Job, gpus: int) -> Job:
    """Return the job with all defaults for this machine. Raises `MissingVariable`."""
    # All nodes share this machine, so a spare could not replace a lost node.
    running = job.model_copy(update={"spec": job.spec.model_copy(update={"suspend": False, "spares": 0})})
    return resolve_variables(resolve_local_procs_per_node(_fix_node_count(running), gpus), os.environ)


def _fix_node_count(job: Job) -> Job:
    """Return an elastic job with a fixed number of nodes, because it can't grow on this machine."""
    if job.spec.elastic is None:
        return job
    elastic = job.spec.elastic.model_copy(update={"max_nodes": job.spec.nodes})
    return job.model_copy(update={"spec": job.spec.model_copy(update={"elastic": elastic})})


def remove_remote_storage(job: Job, options: RunOptions) -> Job:
    """Return the job without S3 locations of the files that the user stores on this machine."""
    checkpoint, output = job.spec.checkpoint, job.spec.output
    if options.keeps_here and checkpoint is not None:
        checkpoint = checkpoint.model_copy(update={"s3": None})
    if options.keeps_here and output is not None:
        output = output.model_copy(update={"s3": None})
    if options.checkpoint is not None:
        checkpoint = None
    storage_fields = {"checkpoint": checkpoint, "output": output}
    return job.model_copy(update={"spec": job.spec.model_copy(update=storage_fields)})


def choose_folder(options: RunOptions, job: Job) -> Path:
    """Return the run's folder."""
    folder = options.folder or run_folder(Path.cwd(), job.metadata.name, job.metadata.uid)
    return folder.expanduser().absolute()


def prepare_machine(display: Display, gpus: tuple[str, ...]) -> Machine:
    """Return this machine with the environment for the ranks. Show the differences from the user's environment."""
    inherited = inherit(os.environ)
    if inherited.dropped_names:
        display.show_note(
            f"not passed on to the ranks, because they belong to another run: {', '.join(inherited.dropped_names)}"
        )
    home = PythonHome(sysconfig.get_path("scripts"), sys.prefix != sys.base_prefix, find_spec("torch") is not None)
    environment = put_python_on_path(inherited.variables, home)
    if environment is not None:
        display.show_note(f"no virtual environment is active: the ranks' python is {home.bin}/python")
    cores = len(os.sched_getaffinity(0))
    return Machine(environment or inherited.variables, gpus, cores, _read_hosts_file())


def _read_hosts_file() -> str:
    try:
        return Path("/etc/hosts").read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ""
