"""Read a status back from the API server, as far as it is valid."""

import json
from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from muster.api.document import JSON, Path
from muster.api.extent import extent_objection
from muster.api.status.status import Status


def status_of(resource: Mapping[str, JSON]) -> Status:
    """Return the resource's status.

    An operator must start whatever wrote the status, such as a user or a later version. So ignore a field that is
    invalid, and a whole entry that lacks a field. Ignore the whole status if it is larger than any that muster writes.
    """
    fields = resource.get("status")
    if extent_objection(fields) is not None:
        return Status()
    while isinstance(fields, dict):
        try:
            return Status.model_validate_json(json.dumps(fields), by_alias=True, by_name=False)
        except ValidationError as error:
            # each iteration removes something, so the loop ends
            fields = _without(fields, {_unreadable(detail["type"], detail["loc"]) for detail in _details(error)})
    return Status()


def _details(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_context=False, include_input=False)


def _unreadable(problem: str, path: Path) -> Path:
    return path[:-1] if problem == "missing" else path


def _without(value: JSON, removed: set[Path], at: Path = ()) -> JSON:
    if isinstance(value, dict):
        return {key: _without(item, removed, (*at, key)) for key, item in value.items() if (*at, key) not in removed}
    if isinstance(value, list):
        return [
            _without(item, removed, (*at, index)) for index, item in enumerate(value) if (*at, index) not in removed
        ]
    return value
