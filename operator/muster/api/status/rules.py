"""Validate the fields of a stored status on which muster's decisions depend; `reader.py` ignores other invalid fields.

If muster ignored an invalid start or end, it would run the job again.
"""

from collections.abc import Iterator, Mapping

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem
from muster.api.size_limits import find_size_problem
from muster.api.timestamps import parse_timestamp

MAX_CONDITIONS = 16

MAX_RANKS = 1_280_000
"""The maximum number of nodes times the maximum number of ranks on a node. A larger number is from an edited status."""

_FINAL_CONDITIONS = {"Succeeded": "Complete", "Failed": "Failed"}
_DECISIVE_CONDITIONS = ("Complete", "Failed", "Suspended")
_STATUSES = ("True", "False", "Unknown")


def find_status_problems(fields: Mapping[str, JSON]) -> tuple[FieldProblem, ...]:
    """Return the problems in these fields; a status that muster wrote has none."""
    size_problem = find_size_problem(dict(fields))
    if size_problem is not None:
        return (FieldProblem("status", f"{size_problem}: remove what muster did not write"),)
    return tuple(_find_problems(fields))


def _find_problems(fields: Mapping[str, JSON]) -> Iterator[FieldProblem]:
    attempt = fields.get("attempt", 0)
    if not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 0:
        yield FieldProblem("status.attempt", f"found {_describe(attempt)}; a whole number from 0 is expected")
    if "startTime" in fields:
        yield from _check_time("status.startTime", fields["startTime"])
    yield from _check_training_job(fields.get("backend"))
    conditions = fields.get("conditions", [])
    if not isinstance(conditions, list) or len(conditions) > MAX_CONDITIONS:
        yield FieldProblem("status.conditions", f"a list of at most {MAX_CONDITIONS} conditions is expected")
        return
    problems = [problem for index, entry in enumerate(conditions) for problem in _check_condition(index, entry)]
    yield from problems
    if not problems:
        yield from _check_end(fields.get("phase", ""), conditions)


def _check_training_job(backend: JSON) -> Iterator[FieldProblem]:
    """Check the times of requests to SageMaker, which show whether a training job may exist."""
    value = backend.get("sagemaker") if isinstance(backend, dict) else None
    if not isinstance(value, dict):
        return
    path = "status.backend.sagemaker"
    if not isinstance(value.get("trainingJobName"), str):
        yield FieldProblem(
            f"{path}.trainingJobName", f"found {_describe(value.get('trainingJobName'))}; text is expected"
        )
    yield from _check_time(f"{path}.triedAt", value.get("triedAt"))
    retry = value.get("retry")
    if isinstance(retry, dict):
        yield from _check_time(f"{path}.retry.until", retry.get("until"))


def _check_condition(index: int, entry: JSON) -> Iterator[FieldProblem]:
    path = f"status.conditions[{index}]"
    condition_type = entry.get("type") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(condition_type, str):
        yield FieldProblem(path, "a condition with a type is expected")
        return
    if condition_type not in _DECISIVE_CONDITIONS:
        return
    if entry.get("status") not in _STATUSES:
        yield FieldProblem(
            f"{path}.status",
            f"found {_describe(entry.get('status'))} of {condition_type}; allowed: {', '.join(_STATUSES)}",
        )
    if not isinstance(entry.get("reason"), str):
        yield FieldProblem(
            f"{path}.reason",
            f"found {_describe(entry.get('reason'))} of {condition_type}; one CamelCase word is expected",
        )
    yield from _check_time(f"{path}.lastTransitionTime", entry.get("lastTransitionTime"))


def _check_time(path: str, value: JSON) -> Iterator[FieldProblem]:
    try:
        parse_timestamp(value if isinstance(value, str) else "")
    except ValueError:
        yield FieldProblem(path, f"found {_describe(value)}; a time such as 2026-11-21T04:05:19Z is expected")


def _check_end(phase: JSON, conditions: list[JSON]) -> Iterator[FieldProblem]:
    """Check that a job in a final phase has the matching condition, which a user may have removed."""
    condition_type = _FINAL_CONDITIONS.get(phase) if isinstance(phase, str) else None
    ends = (entry for entry in conditions if isinstance(entry, dict) and entry["type"] in _FINAL_CONDITIONS.values())
    if condition_type is not None and not any(entry["status"] == "True" for entry in ends):
        yield FieldProblem(
            "status.conditions",
            f"the phase is {phase} and {condition_type} isn't True; restore the condition, or remove the whole status "
            "to run the job once more",
        )


def _describe(value: JSON) -> str:
    match value:
        case None:
            return "nothing"
        case str():
            return f'"{value[:40]}"'
        case bool() | int() | float():
            return str(value).lower()
        case _:
            return "a list" if isinstance(value, list) else "fields"
