"""An account's permissions against its requests."""

from typing import Any

import pytest

from cluster.rights import EVERYWHERE, Grant, Use, grants, not_granted, not_used, uses

ACCOUNT = "system:muster"


def event(verb: str, user: str = "system:serviceaccount:system:muster", **about: str) -> dict[str, Any]:
    return {"verb": verb, "user": {"username": user}, "objectRef": about}


def test_only_the_accounts_requests_for_resources_count() -> None:
    forbidden = event("get", resource="nodes", name="n")
    forbidden["annotations"] = {"authorization.k8s.io/decision": "forbid"}
    events = [
        event("create", resource="pods", namespace="a"),
        event("create", resource="pods", namespace="a"),
        event("patch", resource="jobs", subresource="status", apiGroup="muster.dev", namespace="a", name="j"),
        event("get", "admin", resource="secrets", namespace="a"),
        {"verb": "get", "user": {"username": "system:serviceaccount:system:muster"}, "requestURI": "/version"},
        forbidden,
    ]
    assert uses(events, ACCOUNT) == {
        Use("create", "", "pods", "a", ""),
        Use("patch", "muster.dev", "jobs/status", "a", "j"),
        Use("get", "", "nodes", "", "n", allowed=False),
    }


def role(kind: str, name: str, namespace: str | None, **rule: list[str]) -> dict[str, Any]:
    return {"kind": kind, "metadata": metadata(name, namespace), "rules": [rule]}


def binding(kind: str, to: str, name: str, namespace: str | None, account: str = ACCOUNT) -> dict[str, Any]:
    where, _, who = account.partition(":")
    return {
        "kind": kind,
        "metadata": metadata("b", namespace),
        "roleRef": {"kind": to, "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": where, "name": who}],
    }


def metadata(name: str, namespace: str | None) -> dict[str, str]:
    return {"name": name} | ({} if namespace is None else {"namespace": namespace})


PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        (
            [role("ClusterRole", "r", None, **PODS), binding("ClusterRoleBinding", "ClusterRole", "r", None)],
            {Grant("get", "", "pods", EVERYWHERE), Grant("list", "", "pods", EVERYWHERE)},
        ),
        (
            [role("ClusterRole", "r", None, **PODS), binding("RoleBinding", "ClusterRole", "r", "a")],
            {Grant("get", "", "pods", "a"), Grant("list", "", "pods", "a")},
        ),
        (
            [role("Role", "r", "a", **PODS, resourceNames=["p"]), binding("RoleBinding", "Role", "r", "a")],
            {Grant("get", "", "pods", "a", ("p",)), Grant("list", "", "pods", "a", ("p",))},
        ),
        ([role("Role", "r", "b", **PODS), binding("RoleBinding", "Role", "r", "a")], set()),
        ([role("Role", "r", "a", **PODS), binding("RoleBinding", "Role", "r", "a", "system:other")], set()),
    ],
)
def test_a_right_is_a_rule_where_it_is_bound(objects: list[dict[str, Any]], expected: set[Grant]) -> None:
    assert grants(objects, ACCOUNT) == expected


USE = Use("get", "", "pods", "a", "p")


@pytest.mark.parametrize(
    ("grant", "use", "covered"),
    [
        (Grant("get", "", "pods", EVERYWHERE), USE, True),
        (Grant("get", "", "pods", "a"), USE, True),
        (Grant("get", "", "pods", "a", ("p",)), USE, True),
        (Grant("get", "", "pods", "a", ("q",)), USE, False),
        (Grant("get", "", "pods", "b"), USE, False),
        (Grant("list", "", "pods", "a"), USE, False),
        (Grant("get", "apps", "pods", "a"), USE, False),
        (Grant("get", "", "pods/log", "a"), USE, False),
    ],
)
def test_what_is_asked_without_a_right_and_what_is_allowed_for_nothing(grant: Grant, use: Use, covered: bool) -> None:  # noqa: FBT001
    assert not_granted([use], [grant]) == ([] if covered else [use])
    assert not_used([grant], [use]) == ([] if covered else [grant])


def test_what_the_api_server_refused_was_not_granted() -> None:
    refused = Use("get", "", "pods", "a", "p", allowed=False)
    assert not_granted([refused], [Grant("get", "", "pods", EVERYWHERE)]) == [refused]
