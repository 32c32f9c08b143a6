"""Validate the parts of a status on which decisions depend; the rest is read as far as it is valid.

If a start or an end were lost, muster would run a job a second time.
"""

from collections.abc import Iterator, Mapping

from muster.api.document import JSON
from muster.api.extent import extent_objection
from muster.api.field_problems import FieldProblem
from muster.api.timestamps import from_text

MAX_CONDITIONS = 16

_FINAL = {"Succeeded": "Complete", "Failed": "Failed"}
_DECIDING = ("Complete", "Failed", "Suspended")
_STATUSES = ("True", "False", "Unknown")


def status_problems(fields: Mapping[str, JSON]) -> tuple[FieldProblem, ...]:
    """Find problems in the deciding parts of a stored status; a status that muster wrote has none."""
    extent = extent_objection(dict(fields))
    if extent is not None:
        return (FieldProblem("status", f"{extent}: remove what muster did not write"),)
    return tuple(_problems(fields))


def _problems(fields: Mapping[str, JSON]) -> Iterator[FieldProblem]:
    attempt = fields.get("attempt", 0)
    if not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 0:
        yield FieldProblem("status.attempt", f"found {_shown(attempt)}; a whole number from 0 is expected")
    if "startTime" in fields:
        yield from _time("status.startTime", fields["startTime"])
    yield from _training_job(fields.get("backend"))
    conditions = fields.get("conditions", [])
    if not isinstance(conditions, list) or len(conditions) > MAX_CONDITIONS:
        yield FieldProblem("status.conditions", f"a list of at most {MAX_CONDITIONS} conditions is expected")
        return
    wrong = [problem for index, entry in enumerate(conditions) for problem in _condition(index, entry)]
    yield from wrong
    if not wrong:
        yield from _end(fields.get("phase", ""), conditions)


def _training_job(backend: JSON) -> Iterator[FieldProblem]:
    """When muster last called and next calls SageMaker: a training job may exist that muster has not observed yet."""
    value = backend.get("sagemaker") if isinstance(backend, dict) else None
    if not isinstance(value, dict):
        return
    path = "status.backend.sagemaker"
    if not isinstance(value.get("trainingJobName"), str):
        yield FieldProblem(f"{path}.trainingJobName", f"found {_shown(value.get('trainingJobName'))}; text is expected")
    yield from _time(f"{path}.triedAt", value.get("triedAt"))
    retry = value.get("retry")
    if isinstance(retry, dict):
        yield from _time(f"{path}.retry.until", retry.get("until"))


def _condition(index: int, entry: JSON) -> Iterator[FieldProblem]:
    path = f"status.conditions[{index}]"
    kind = entry.get("type") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(kind, str):
        yield FieldProblem(path, "a condition with a type is expected")
        return
    if kind not in _DECIDING:
        return
    if entry.get("status") not in _STATUSES:
        yield FieldProblem(
            f"{path}.status", f"found {_shown(entry.get('status'))} of {kind}; allowed: {', '.join(_STATUSES)}"
        )
    if not isinstance(entry.get("reason"), str):
        yield FieldProblem(
            f"{path}.reason", f"found {_shown(entry.get('reason'))} of {kind}; one CamelCase word is expected"
        )
    yield from _time(f"{path}.lastTransitionTime", entry.get("lastTransitionTime"))


def _time(path: str, value: JSON) -> Iterator[FieldProblem]:
    try:
        from_text(value if isinstance(value, str) else "")
    except ValueError:
        yield FieldProblem(path, f"found {_shown(value)}; a time such as 2026-11-21T04:05:19Z is expected")


def _end(phase: JSON, conditions: list[JSON]) -> Iterator[FieldProblem]:
    """A phase that says that the job ended, without the condition for it: a user removed one of them."""
    kind = _FINAL.get(phase) if isinstance(phase, str) else None
    ends = (entry for entry in conditions if isinstance(entry, dict) and entry["type"] in _FINAL.values())
    if kind is not None and not any(entry["status"] == "True" for entry in ends):
        yield FieldProblem(
            "status.conditions",
            f"the phase is {phase} and {kind} isn't True; restore the condition, or remove the whole status to run the "
            "job once more",
        )


def _shown(value: JSON) -> str:
    match value:
        case None:
            return "nothing"
        case str():
            return f'"{value[:40]}"'
        case bool() | int() | float():
            return str(value).lower()
        case _:
            return "a list" if isinstance(value, list) else "fields"
