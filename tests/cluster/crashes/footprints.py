"""Names the calls of a job: the same step has the same name, for any job and in any run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cluster.api_proxy import Call

CHANGES = ("create", "update", "patch", "delete")


@dataclass(frozen=True)
class Step:
    """The `nth` call (from 1) of its kind; `what` is such as "create pods -0-0"."""

    what: str
    nth: int

    @property
    def is_change(self) -> bool:
        """Whether the call changes something on the API server."""
        return self.what.split()[0] in CHANGES

    def __str__(self) -> str:
        return self.what if self.nth == 1 else f"{self.what} ({self.nth})"


def job_of(call: Call) -> str | None:
    """Return the name of the call's job, without a hyphen; None: no job, or all jobs."""
    if call.resource == "events" and call.verb == "create":
        return str(json.loads(call.body)["involvedObject"]["name"])
    if call.resource.split("/")[0] not in ("pods", "services", "configmaps", "distributedtrainingjobs"):
        return None
    return _name(call).split("-")[0] or None


def what_of(call: Call) -> str:
    """Return the kind of a call."""
    verb = "rehearse" if "dryRun=All" in call.query else call.verb
    return f"{verb} {call.resource or call.path} {_subject(call)}".rstrip()


def steps(calls: Sequence[Call], job: str | None) -> tuple[Step, ...]:
    """Return the calls of a scenario in their order, without watches: a watch is closed, not answered."""
    counted: Counter[str] = Counter()
    result = []
    for call in calls:
        if call.verb != "watch" and job_of(call) == job:
            what = what_of(call)
            counted[what] += 1
            result.append(Step(what, counted[what]))
    return tuple(result)


def _name(call: Call) -> str:
    return call.name or (str(_body(call)["metadata"].get("name", "")) if call.verb == "create" else "")


def _body(call: Call) -> Any:
    return json.loads(call.body)


def _subject(call: Call) -> str:
    job = job_of(call)
    if call.resource == "events" and job is not None:
        return str(_body(call)["reason"])
    if call.resource == "distributedtrainingjobs/status":
        return _news(_body(call)["status"])
    return _name(call) if job is None else _name(call).removeprefix(job)


def _news(status: Any) -> str:
    """Return the subject of a status write; progress of ranks counts as one subject."""
    conditions = [f"{one['type']}={one['status']}" for one in status.get("conditions", ()) if one["type"] in _STAGES]
    return " ".join([status.get("phase", "-"), *conditions])


_STAGES = ("Complete", "Failed", "Suspended")
