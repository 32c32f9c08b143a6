"""Parse the stored status of a resource, ignoring its invalid parts."""

import json
from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from muster.api.document import JSON, FieldPath
from muster.api.size_limits import find_size_problem
from muster.api.status.status import Status


def read_status(resource: Mapping[str, JSON]) -> Status:
    """Return the resource's status.

    This function drops invalid fields, and list entries that lack a field, because the operator must start even if a
    user or a later version of muster wrote the status. For a status that exceeds the size limits or is not Unicode, it
    returns an empty status.
    """
    fields = resource.get("status")
    if find_size_problem(fields) is not None:
        return Status()
    while isinstance(fields, dict):
        try:
            return Status.model_validate_json(json.dumps(fields), by_alias=True, by_name=False)
        except ValidationError as error:
            valid_fields = _remove_paths(
                fields, {_find_invalid_path(detail["type"], detail["loc"]) for detail in _list_error_details(error)}
            )
            # For a text that is not Unicode, such as half of a surrogate pair, the error names no field. Without this
            # check the loop would never end.
            if valid_fields == fields:
                return Status()
            fields = valid_fields
    return Status()


def _list_error_details(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_context=False, include_input=False)


def _find_invalid_path(error_type: str, path: FieldPath) -> FieldPath:
    return path[:-1] if error_type == "missing" else path


def _remove_paths(value: JSON, removed_paths: set[FieldPath], parent: FieldPath = ()) -> JSON:
    if isinstance(value, dict):
        return {
            key: _remove_paths(item, removed_paths, (*parent, key))
            for key, item in value.items()
            if (*parent, key) not in removed_paths
        }
    if isinstance(value, list):
        return [
            _remove_paths(item, removed_paths, (*parent, index))
            for index, item in enumerate(value)
            if (*parent, index) not in removed_paths
        ]
    return value
