"""TokenReviews and SubjectAccessReviews, as the API server answers them."""

import pytest

from muster.api.document import JSON
from muster.objects.kubernetes.reviews import (
    ResourceAttributes,
    UserInfo,
    build_access_review,
    build_token_review,
    read_access_review,
    read_token_review,
)

ALICE: dict[str, JSON] = {"username": "alice", "uid": "1", "groups": ["team-a"], "extra": {"scopes": ["a", "b"]}}
BOARD = ("muster-board",)


@pytest.mark.parametrize(
    ("status", "audiences", "is_valid"),
    [
        ({"authenticated": True, "user": ALICE}, (), True),
        ({"authenticated": True, "user": ALICE, "audiences": ["https://kubernetes.default.svc"]}, (), True),
        ({"authenticated": True, "user": ALICE, "audiences": ["muster-board"]}, BOARD, True),
        # an authenticator that knows no audiences
        ({"authenticated": True, "user": ALICE}, BOARD, False),
        ({"authenticated": True, "user": ALICE, "audiences": ["https://kubernetes.default.svc"]}, BOARD, False),
        ({"authenticated": False, "user": ALICE}, (), False),
        ({"authenticated": "true", "user": ALICE}, (), False),
        ({"authenticated": True, "user": {}}, (), False),
        ({"authenticated": True}, (), False),
        ({"error": "expired"}, (), False),
        (None, (), False),
    ],
)
def test_a_token_is_valid_only_if_the_api_server_says_so(
    status: JSON, audiences: tuple[str, ...], *, is_valid: bool
) -> None:
    user = read_token_review({"status": status}, audiences)
    assert (user is not None) is is_valid
    if user is not None:
        assert user == UserInfo("alice", "1", ("team-a",), (("scopes", ("a", "b")),))


@pytest.mark.parametrize(
    ("status", "is_allowed"),
    [
        ({"allowed": True}, True),
        ({"allowed": True, "denied": False}, True),
        ({"allowed": True, "denied": True}, False),
        ({"allowed": False}, False),
        ({"allowed": "true"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_request_is_allowed_only_if_the_api_server_says_so(status: JSON, *, is_allowed: bool) -> None:
    assert read_access_review({"status": status}) is is_allowed


def test_a_review_has_all_that_is_known_about_the_user() -> None:
    user = UserInfo("alice", "1", ("team-a",), (("scopes", ("a", "b")),))
    spec = build_access_review(user, ResourceAttributes("a", "get", "", "pods", "log"))["spec"]
    assert spec == {
        "user": "alice",
        "uid": "1",
        "groups": ["team-a"],
        "extra": {"scopes": ["a", "b"]},
        "resourceAttributes": {
            "namespace": "a",
            "verb": "get",
            "group": "",
            "resource": "pods",
            "subresource": "log",
            "name": "",
        },
    }


def test_a_token_for_the_api_server_is_asked_about_without_audiences() -> None:
    assert build_token_review("t", ())["spec"] == {"token": "t"}
    assert build_token_review("t", BOARD)["spec"] == {"token": "t", "audiences": ["muster-board"]}
