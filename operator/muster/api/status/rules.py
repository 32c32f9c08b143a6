"""What of a status decides, and so has to be readable before anybody acts on it. The rest is read as far as it goes.

A start that was forgotten, or an end, would let a job that ran run once more.
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
    """What is wrong with the deciding parts of a status as it is stored; nothing for one that muster wrote."""
    extent = extent_objection(dict(fields))
    if extent is not None:
        return (FieldProblem("status", f"{extent}: take away what muster did not write"),)
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
    """When SageMaker was asked, and is to be asked again: there may be a training job that nobody sees yet."""
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
    """A phase that tells of an end, and no condition that does: somebody took one of them away."""
    kind = _FINAL.get(phase) if isinstance(phase, str) else None
    ends = (entry for entry in conditions if isinstance(entry, dict) and entry["type"] in _FINAL.values())
    if kind is not None and not any(entry["status"] == "True" for entry in ends):
        yield FieldProblem(
            "status.conditions",
            f"the phase is {phase} and {kind} isn't True; put the condition back, or take the whole status away for a "
            "job that shall run once more",
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
