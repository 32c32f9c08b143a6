"""Parse the stored status of a resource, and ignore its invalid parts."""

import json
from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from muster.api.document import JSON, FieldPath
from muster.api.size_limits import find_size_problem
from muster.api.status.status import Status


def read_status(resource: Mapping[str, JSON]) -> Status:
    """Return the resource's status.

    A user or a later version may have written the status, and the operator must start nevertheless. So this function
    drops invalid fields, and list entries that lack a field. It drops a status that is larger than muster writes.
    """
    fields = resource.get("status")
    if find_size_problem(fields) is not None:
        return Status()
    while isinstance(fields, dict):
        try:
            return Status.model_validate_json(json.dumps(fields), by_alias=True, by_name=False)
        except ValidationError as error:
            # each iteration removes something, so the loop ends
            fields = _remove_paths(
                fields, {_find_unreadable(detail["type"], detail["loc"]) for detail in _error_details(error)}
            )
    return Status()


def _error_details(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_context=False, include_input=False)


def _find_unreadable(problem: str, path: FieldPath) -> FieldPath:
    return path[:-1] if problem == "missing" else path


def _remove_paths(value: JSON, removed: set[FieldPath], at: FieldPath = ()) -> JSON:
    if isinstance(value, dict):
        return {
            key: _remove_paths(item, removed, (*at, key)) for key, item in value.items() if (*at, key) not in removed
        }
    if isinstance(value, list):
        return [
            _remove_paths(item, removed, (*at, index))
            for index, item in enumerate(value)
            if (*at, index) not in removed
        ]
    return value
