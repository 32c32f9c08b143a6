"""The job's code under its own hash instead of the training job's name, so that it is uploaded once. Pure."""

from muster.api.document import JSON
from muster.api.s3_uri import parse
from muster.render.sagemaker.request.training_request import Fields
from muster.render.storage.source_archive import NAME, SourceArchive


def shared_uri(uri: str, training_job: str, packed: SourceArchive) -> str:
    """Where code lies that all training jobs with the same share; `uri` where the request has it elsewhere."""
    own = f"{training_job}/source/{NAME}"
    return str(packed.place(parse(uri.removesuffix(own)))) if uri.endswith(f"/{own}") else uri


def with_uri(body: Fields, old: str, new: str) -> Fields:
    """The request with another place for its code, wherever it names that."""
    return {name: _replaced(value, old, new) for name, value in body.items()}


def names(body: JSON, uri: str) -> bool:
    """Whether the request names the place."""
    return _replaced(body, uri, "") != body


def _replaced(value: JSON, old: str, new: str) -> JSON:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {key: _replaced(item, old, new) for key, item in value.items()}
    return [_replaced(item, old, new) for item in value] if isinstance(value, list) else value
