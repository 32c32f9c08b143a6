"""Name requests to the API server as Kubernetes does: by verb and resource. For metrics, in bounded number."""

from collections.abc import Mapping

from muster.objects.kubernetes import kinds
from muster.objects.kubernetes.kinds import Kind

OTHER = "other"

_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}
_KINDS = {value.plural for value in vars(kinds).values() if isinstance(value, Kind)}
_SUBRESOURCES = {"status", "log"}


def find_verb(method: str, path: str, query: Mapping[str, str | int]) -> str:
    """Return the verb: get, list, watch, create, patch, update or delete."""
    if method != "GET":
        return _VERBS.get(method, OTHER)
    _, name = _split(path)
    if name:
        return "get"
    return "watch" if "watch" in query else "list"


def find_resource(path: str) -> str:
    """Return the resource without its name: `pods`, `pods/log`, or `other` for paths that are no objects."""
    resource, name = _split(path)
    if resource not in _KINDS:
        return OTHER
    _, _, subresource = name.partition("/")
    return f"{resource}/{subresource}" if subresource in _SUBRESOURCES else resource


def _split(path: str) -> tuple[str, str]:
    """Return the plural of an object's path, and its name with a subresource; the name is "" for a list."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:  # noqa: PLR2004 - the namespace's name, and a resource
        parts = parts[2:]
    return (parts[0], "/".join(parts[1:])) if parts else ("", "")
