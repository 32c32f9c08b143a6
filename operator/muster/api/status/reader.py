"""A status as the API server holds it, read back as far as it can be understood."""

import json
from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from muster.api.document import JSON, Path
from muster.api.extent import extent_objection
from muster.api.status.status import Status


def status_of(resource: Mapping[str, JSON]) -> Status:
    """The resource's status.

    Whatever wrote it, a person's hand or a later version, it must not keep an operator from starting: what can't be
    read counts as not there, and an entry that lacks something goes as a whole. Of one that holds more than any that
    muster writes nothing is read.
    """
    written = resource.get("status")
    if extent_objection(written) is not None:
        return Status()
    while isinstance(written, dict):
        try:
            return Status.model_validate_json(json.dumps(written), by_alias=True, by_name=False)
        except ValidationError as error:
            # each time round something goes, so that this ends
            written = _without(written, {_unreadable(detail["type"], detail["loc"]) for detail in _details(error)})
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
