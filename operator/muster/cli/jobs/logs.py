"""`muster logs JOB`: print the output of a job's ranks on a cluster, each line with its rank."""

from __future__ import annotations

import sys
from contextlib import aclosing
from dataclasses import dataclass
from typing import IO, cast

from rich.console import Console

from muster.cli.board.observed_job import ObservedJob
from muster.cli.board.rank_lines import format_coloured, format_plain, parse_line, should_show
from muster.cli.errors import BadInput
from muster.cli.jobs.cluster import ClusterJob, run_on_cluster
from muster.cli.jobs.job_reference import JobReference
from muster.cli.jobs.log_follower import LogFollower, list_pods, print_lines
from muster.cli.jobs.pod_log import read_lines
from muster.cli.jobs.watched_job import JobDeleted, get_job, watch_job
from muster.cli.options import check_ranks
from muster.cli.standard_error import StandardError


@dataclass(frozen=True)
class LogSelection:
    """The lines to print: those of `ranks` (empty: all and launchers), and the last `tail` of each node (None: all)."""

    ranks: frozenset[int] = frozenset()
    tail: int | None = None


def show_logs(reference: JobReference, selection: LogSelection) -> int:
    """Print the current lines."""

    async def show(target: ClusterJob) -> int:
        observed_job = await get_job(target)
        check_job_has_logs(selection.ranks, observed_job)
        pods = await list_pods(target, observed_job)
        if not pods:
            raise BadInput(f"{target} has no pods{_explain_missing_pods(observed_job)}")
        printer = _make_printer(selection)
        if all(pod.is_pending for pod in pods):
            printer.print_note(observed_job.status.message)
        for pod in pods:
            if pod.is_pending:
                printer.print_note(f"[{pod.name}] no log yet: the pod is Pending")
            else:
                await print_lines(printer, pod.name, read_lines(target, pod.name, selection.tail))
        return 0

    return run_on_cluster(reference, show)


def follow_logs(reference: JobReference, selection: LogSelection) -> int:
    """Print the current lines and new ones, until the job has ended."""

    async def follow(target: ClusterJob) -> int:
        follower = LogFollower(target, selection.tail, _make_printer(selection))
        try:
            async with aclosing(watch_job(target)) as jobs:
                async for observed_job in jobs:
                    check_job_has_logs(selection.ranks, observed_job)
                    await follower.update(observed_job)
                    if observed_job.is_over:
                        break
        except JobDeleted:
            follower.print_note(f"{target} was deleted")
        await follower.wait_for_end()
        return 0

    return run_on_cluster(reference, follow)


@dataclass(frozen=True)
class _Printer:
    """Prints the requested lines, and muster's notes on standard error."""

    selection: LogSelection
    console: Console
    notes: Console

    def print_line(self, pod: str, text: str) -> None:
        """Print a line, if it is requested."""
        line = parse_line(pod, text)
        if not should_show(line, self.selection.ranks):
            return
        if self.console.is_terminal:
            self.console.print(format_coloured(line), soft_wrap=True)
        else:
            self.console.out(format_plain(line), highlight=False)

    def print_note(self, text: str) -> None:
        """Print a message of muster."""
        self.notes.print(text, markup=False, soft_wrap=True, style="dim")


def _make_printer(selection: LogSelection) -> _Printer:
    notes = Console(file=cast(IO[str], StandardError(sys.stderr)), highlight=False)
    return _Printer(selection, Console(file=sys.stdout, highlight=False), notes)


def reject_training_job(observed_job: ObservedJob) -> None:
    """Raise `BadInput` for a SageMaker job, which has no pods; its log is in CloudWatch."""
    training = observed_job.status.backend.sagemaker if observed_job.status.backend is not None else None
    if training is None:
        return
    raise BadInput(
        f"{observed_job.name} runs on SageMaker, and CloudWatch has a log stream for each host: "
        f"aws logs tail /aws/sagemaker/TrainingJobs --log-stream-name-prefix {training.training_job_name}/ "
        f"--region {training.region} --since 1d; `muster ranks {observed_job.name}` shows the state of each rank"
    )


def check_job_has_logs(ranks: frozenset[int], observed_job: ObservedJob) -> None:
    """Raise `BadInput` for a job without pods' logs, and for ranks that the job does not have."""
    reject_training_job(observed_job)
    if observed_job.status.ranks is not None:
        check_ranks(ranks, observed_job.status.ranks.world)


def _explain_missing_pods(observed_job: ObservedJob) -> str:
    if observed_job.is_over:
        return " any more: muster deleted them when it had ended (spec.cleanPodPolicy)"
    return f": {observed_job.status.message}" if observed_job.status.message else " yet"
