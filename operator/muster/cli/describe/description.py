"""The text of `muster describe`: sections, each with a title and indented lines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from muster.api.json_fields import read_mapping, read_string
from muster.api.plurals import pluralize
from muster.api.status.restarts import RestartRecord
from muster.api.status.status import RankDetail, Status
from muster.api.timestamps import parse_untrusted_timestamp
from muster.cli.board.goodput_lines import format_goodput
from muster.cli.board.observed_job import build_view
from muster.cli.board.printable import replace_unprintable
from muster.cli.board.rank_lines import strip_control_sequences
from muster.cli.board.source_lines import format_source
from muster.cli.board.spare_line import format_spares
from muster.cli.board.view import format_elapsed, format_metrics, format_pace
from muster.cli.describe.aligned_table import align
from muster.cli.describe.next_steps import list_next_steps
from muster.cli.describe.node_rows import NODE_TITLES, list_node_rows
from muster.cli.describe.observations import JobObservations
from muster.cli.listing.table import format_age

MAX_FAILED_RANKS = 4
"""The maximum number of failed ranks whose last lines are shown: the first failures."""

_INDENT = "  "
_MAX_OBJECTS = 2


def describe(observations: JobObservations, now: float) -> list[str]:
    """Return the lines; `now` is in Unix seconds."""
    lines = list(_describe_head(observations, now))
    for title, describe_section in _SECTIONS:
        content = describe_section(observations, now)
        if content:
            lines += ["", title, *(_INDENT + line if line else "" for line in content)]
    return lines


def _describe_head(observations: JobObservations, now: float) -> Iterator[str]:
    job, view = observations.job, build_view(observations.job, now)
    metadata, spec = read_mapping(job.resource.get("metadata")), read_mapping(job.resource.get("spec"))
    names = (job.name, read_string(metadata.get("namespace")), read_string(spec.get("backend")) or "Kubernetes")
    yield _INDENT.join(map(replace_unprintable, (*names, job.status.phase)))
    yield job.status.message
    ranks = "" if job.status.ranks is None else job.status.ranks.ready
    details = {
        "time": format_elapsed(view.elapsed_seconds),
        "attempt": str(job.status.attempt) if job.status.attempt else "",
        "ranks": ranks,
        "progress": ", ".join((*format_pace(job.status), *format_metrics(job.status))),
        "goodput": "; ".join(format_goodput(job.status)).removeprefix("goodput "),
        "spares": "; ".join(format_spares(job.status)),
        "code": "; ".join(format_source(job.status)),
        "training job": _describe_training_job(observations),
    }
    width = max(len(title) for title, text in details.items() if text)
    for title, text in details.items():
        if text:
            yield f"{_INDENT}{title.ljust(width)}  {text}"


def _describe_training_job(observations: JobObservations) -> str:
    backend = observations.job.status.backend
    if backend is None or backend.sagemaker is None:
        return ""
    training = backend.sagemaker
    state = " ".join(part for part in (training.status, training.secondary_status) if part)
    return f"{training.training_job_name} in {training.region}{f': {state}' if state else ''}"


def _describe_conditions(observations: JobObservations, now: float) -> list[str]:
    rows = [
        (entry.type, entry.status, entry.reason, _format_age(entry.last_transition_time, now), entry.message)
        for entry in observations.job.status.conditions
    ]
    return align(("TYPE", "STATUS", "REASON", "AGE", "MESSAGE"), rows)


def _describe_attempts(observations: JobObservations, now: float) -> list[str]:
    restarts = observations.job.status.restarts
    if restarts is None:
        return []
    rows = [_build_attempt_row(record, now) for record in restarts.history]
    earlier = restarts.total - len(rows)
    note = [f"{pluralize(earlier, 'earlier restart')} left out"] if earlier > 0 else []
    return [*align(("ATTEMPT", "REASON", "COUNTS AS", "AGE", "LOST", "WHAT FAILED FIRST"), rows), *note]


def _build_attempt_row(record: RestartRecord, now: float) -> tuple[str, ...]:
    lost = [] if record.seconds_lost is None else [f"{record.seconds_lost:.1f} s"]
    lost += [] if record.steps_lost is None else [pluralize(record.steps_lost, "step")]
    place = f" ({record.node_name})" if record.node_name else ""
    age = _format_age(record.at, now)
    return (
        str(record.attempt),
        record.reason,
        record.counts_as,
        age,
        ", ".join(lost) or "-",
        f"{record.message}{place}",
    )


def _describe_nodes(observations: JobObservations, _: float) -> list[str]:
    return align(NODE_TITLES, list_node_rows(observations.job.status, observations.pods))


def _describe_failed_ranks(observations: JobObservations, now: float) -> list[str]:
    lines: list[str] = []
    for detail in list_failed_ranks(observations.job.status)[:MAX_FAILED_RANKS]:
        lines.append(_format_rank(detail, now))
        output = (observations.last_lines or {}).get(detail.rank, ())
        lines += [f"| {strip_control_sequences(line)}" for line in output]
    return lines


def list_failed_ranks(status: Status) -> tuple[RankDetail, ...]:
    """Return the failed ranks, the first failure first."""
    details = () if status.ranks is None else status.ranks.details
    return tuple(detail for detail in details if detail.state == "Failed")


def _format_rank(detail: RankDetail, now: float) -> str:
    pod = detail.pod or f"node {detail.node}"
    place = f"{pod} ({detail.node_name})" if detail.node_name else pod
    end = f"signal {detail.signal}" if detail.signal is not None else ""
    end = f"exit code {detail.exit_code}" if detail.exit_code is not None else end
    step = "" if detail.step is None else f"step {detail.step}"
    at = f"{_format_age(detail.at, now)} ago" if detail.at else ""
    facts = ", ".join(part for part in (detail.reason, end, step, at) if part)
    return f"rank {detail.rank} on {place}: {facts}{f': {detail.message}' if detail.message else ''}"


def _describe_events(observations: JobObservations, now: float) -> list[str]:
    rows = []
    for group in observations.events:
        more = len(group.objects) - _MAX_OBJECTS
        names = ", ".join(group.objects[:_MAX_OBJECTS]) + (f" and {more} more" if more > 0 else "")
        age = format_age(now - group.at) if group.at else "-"
        rows.append((age, str(group.count), group.type, group.reason, names, group.message))
    return align(("AGE", "COUNT", "TYPE", "REASON", "OBJECT", "MESSAGE"), rows)


def _describe_next_steps(observations: JobObservations, _: float) -> Sequence[str]:
    return [*observations.unreadable, *list_next_steps(observations.job)]


def _format_age(time: str | None, now: float) -> str:
    at = parse_untrusted_timestamp(time or "")
    return format_age(now - at) if at else "-"


_SECTIONS: Sequence[tuple[str, Callable[[JobObservations, float], Sequence[str]]]] = (
    ("Conditions", _describe_conditions),
    ("Earlier attempts", _describe_attempts),
    ("Nodes", _describe_nodes),
    ("Failed ranks", _describe_failed_ranks),
    ("Events", _describe_events),
    ("What to do", _describe_next_steps),
)
