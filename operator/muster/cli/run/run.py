"""Run a job on this machine: `muster run`."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from muster.backends.local.devices import find_machine_gpus
from muster.backends.local.environment import MissingVariable
from muster.backends.local.folder_lock import lock_folder
from muster.backends.local.folders import MissingFolder, find_folders
from muster.backends.local.layout import RunLayout
from muster.backends.local.scratch import Scratch
from muster.backends.local.session import open_session
from muster.backends.local.storage import (
    download_inputs,
    drop_downloaded_channels,
    list_downloaded_folders,
    make_local_plan,
    sync,
)
from muster.cli.display import open_stderr_display
from muster.cli.errors import BadInput
from muster.cli.job_file import read_job
from muster.cli.options import RunOptions, check_ranks
from muster.cli.run.cluster_fields import make_cluster_notes
from muster.cli.run.displayed_run import DisplayedRun, finish_run, run_or_report
from muster.cli.run.local_job import (
    SCRATCH,
    choose_folder,
    prepare_machine,
    remove_remote_storage,
    resolve_job,
    set_uid,
)
from muster.core.world import compute_world_size


def run_job(options: RunOptions) -> int:
    """Run the job and show it; return the exit code. Raises `BadInput` before it starts a process."""
    file_job = read_job(options.file, options.template_files)
    # This machine can simulate only nodes that run muster's agent.
    if not file_job.spec.traits.has_collector:
        raise BadInput(f"{options.file}: use --local to run a job of backend {file_job.spec.backend} on this machine")
    job = set_uid(file_job)
    gpus = find_machine_gpus(os.environ, Path("/dev"))
    try:
        resolved_job = remove_remote_storage(resolve_job(job, len(gpus)), options)
        check_ranks(options.ranks, compute_world_size(resolved_job))
        plan = make_local_plan(resolved_job, options.inputs)
        folders = find_folders(drop_downloaded_channels(job, plan), options.inputs, options.checkpoint)
    except (MissingFolder, MissingVariable) as error:
        raise BadInput(str(error)) from None
    display = open_stderr_display()
    for note in make_cluster_notes(job, options):
        display.show_note(note)

    def work() -> int:
        folder = choose_folder(options, job)
        with lock_folder(folder), Scratch(SCRATCH) as scratch:
            layout = RunLayout(folder, scratch.folder, job.metadata.name)
            run = DisplayedRun(resolved_job, layout, display, options)
            machine = prepare_machine(display, gpus)
            if plan is not None:
                download_inputs(plan, layout, display.show_note)
            all_folders = replace(folders, downloads=list_downloaded_folders(plan, layout))
            opener = partial(open_session, resolved_job, layout, machine=machine, folders=all_folders)
            with sync(plan, layout, display.show_note):
                result = asyncio.run(run.run(opener))
        return finish_run(run, job, result)

    return run_or_report(display, work)
