"""Store the job's code by its hash instead of the training job's name, so that it is uploaded once. Pure."""

from muster.api.document import JSON
from muster.api.s3_uri import parse
from muster.render.sagemaker.request.training_request import Fields
from muster.render.storage.source_archive import NAME, SourceArchive


def get_shared_uri(uri: str, training_job: str, archive: SourceArchive) -> str:
    """Return the URI that training jobs with the same code share; `uri` unless it is the default location."""
    default_path = f"{training_job}/source/{NAME}"
    return str(archive.get_uri(parse(uri.removesuffix(default_path)))) if uri.endswith(f"/{default_path}") else uri


def replace_uri(body: Fields, old: str, new: str) -> Fields:
    """Return the request with another URI for its code."""
    return {name: _replace(value, old, new) for name, value in body.items()}


def contains_uri(body: JSON, uri: str) -> bool:
    """Whether the request contains the URI."""
    return _replace(body, uri, "") != body


def _replace(value: JSON, old: str, new: str) -> JSON:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {key: _replace(item, old, new) for key, item in value.items()}
    return [_replace(item, old, new) for item in value] if isinstance(value, list) else value
