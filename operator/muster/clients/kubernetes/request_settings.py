"""What all requests to the API server have in common."""

from muster.distribution import get_version
from muster.objects.kubernetes.kinds import Kind

USER_AGENT = f"muster/{get_version()}"

RESPONSE_SECONDS = 20.0
"""The timeout of a response, or of the start of a stream."""

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""The maximum size of an object: by default 1.5 MiB in etcd, and up to six times that size as JSON."""

MAX_ERROR_BYTES = 1024 * 1024
"""The maximum size of an error's body. A larger body is ignored, and the error has only the HTTP status."""

JSON_CONTENT = "application/json, */*"
METADATA_ONLY = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1, application/json"
"""The Accept header of requests for metadata only. `{}` is "List" for a list."""


def build_accept_header(kind: Kind, suffix: str) -> str:
    """Return the Accept header of requests for objects of a kind."""
    return METADATA_ONLY.format(suffix) if kind.parse_options.is_metadata_only else JSON_CONTENT
