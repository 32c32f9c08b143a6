"""Questions to the API server about a user: TokenReviews and SubjectAccessReviews. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.objects.kubernetes.kinds import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Object


@dataclass(frozen=True)
class UserInfo:
    """A user, as the API server's authenticators describe them (authentication.k8s.io/v1 UserInfo)."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class ResourceAttributes:
    """A request to decide about. `namespace` "": all namespaces; `name` "": all objects."""

    namespace: str
    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""


def build_token_review(token: str, audiences: Sequence[str]) -> Object:
    """Ask whose token this is. Empty `audiences` means the API server's own."""
    spec: dict[str, JSON] = {"token": token}
    if audiences:
        spec["audiences"] = list(audiences)
    return {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.name, "spec": spec}


def read_token_review(review: Object, audiences: Sequence[str]) -> UserInfo | None:
    """Return the user; None if the token is not valid for one of `audiences`."""
    status = read_mapping(review.get("status"))
    user = read_mapping(status.get("user"))
    username = read_string(user.get("username"))
    if status.get("authenticated") is not True or not username:
        return None
    # An authenticator that knows no audiences names none: its tokens are only for the API server.
    if audiences and not set(audiences) & set(_read_strings(status.get("audiences"))):
        return None
    extra = read_mapping(user.get("extra"))
    return UserInfo(
        username,
        read_string(user.get("uid")),
        _read_strings(user.get("groups")),
        tuple((key, _read_strings(values)) for key, values in sorted(extra.items())),
    )


def build_access_review(user: UserInfo, attributes: ResourceAttributes) -> Object:
    """Ask whether the user may send a request."""
    spec: dict[str, JSON] = {
        "user": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra},
        "resourceAttributes": {
            "namespace": attributes.namespace,
            "verb": attributes.verb,
            "group": attributes.group,
            "resource": attributes.resource,
            "subresource": attributes.subresource,
            "name": attributes.name,
        },
    }
    return {"apiVersion": SUBJECT_ACCESS_REVIEWS.api_version, "kind": SUBJECT_ACCESS_REVIEWS.name, "spec": spec}


def read_access_review(review: Object) -> bool:
    """Return whether the request is allowed."""
    status = read_mapping(review.get("status"))
    return status.get("allowed") is True and status.get("denied") is not True


def _read_strings(value: JSON) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
