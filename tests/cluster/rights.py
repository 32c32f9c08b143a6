"""Compares the permissions of an account with its requests: audit log and RBAC objects in, differences out. No I/O."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

EVERYWHERE = ""


@dataclass(frozen=True, order=True)
class Use:
    """A request. `resource` has its subresource after a slash; `allowed` is the API server's decision."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    allowed: bool = True


@dataclass(frozen=True, order=True)
class Grant:
    """One verb on one resource. `namespace` EVERYWHERE: in all; `names` empty: any name."""

    verb: str
    group: str
    resource: str
    namespace: str
    names: tuple[str, ...] = ()

    def covers(self, use: Use) -> bool:
        """Whether the permission allows the request."""
        return (
            (self.verb, self.group, self.resource) == (use.verb, use.group, use.resource)
            and self.namespace in {EVERYWHERE, use.namespace}
            and (not self.names or use.name in self.names)
        )


def uses(events: Iterable[Mapping[str, Any]], account: str) -> frozenset[Use]:
    """Return the requests of a service account (`namespace:name`) for resources; every account may send the others."""
    result = set()
    for event in events:
        about = event.get("objectRef")
        if event["user"].get("username") != f"system:serviceaccount:{account}" or not about or "resource" not in about:
            continue
        resource = "/".join(filter(None, [about["resource"], about.get("subresource")]))
        allowed = event.get("annotations", {}).get("authorization.k8s.io/decision") != "forbid"
        result.add(
            Use(
                *(event["verb"], about.get("apiGroup", ""), resource),
                *(about.get("namespace", ""), about.get("name", ""), allowed),
            )
        )
    return frozenset(result)


def grants(objects: Iterable[Mapping[str, Any]], account: str) -> frozenset[Grant]:
    """Return the permissions of a service account (`namespace:name`) by the roles and bindings among `objects`."""
    objects = list(objects)
    rules = {
        (each["kind"], each["metadata"].get("namespace", EVERYWHERE), each["metadata"]["name"]): each.get("rules") or []
        for each in objects
        if each["kind"] in {"Role", "ClusterRole"}
    }
    result: set[Grant] = set()
    for binding in objects:
        if binding["kind"] not in {"RoleBinding", "ClusterRoleBinding"}:
            continue
        if account not in {f"{subject.get('namespace')}:{subject['name']}" for subject in binding.get("subjects", [])}:
            continue
        where = binding["metadata"].get("namespace", EVERYWHERE)
        role = binding["roleRef"]
        home = where if role["kind"] == "Role" else EVERYWHERE
        for rule in rules.get((role["kind"], home, role["name"]), []):
            result.update(single(rule, where))
    return frozenset(result)


def single(rule: Mapping[str, Any], namespace: str) -> Iterator[Grant]:
    """Split a rule into single grants."""
    names = tuple(rule.get("resourceNames", []))
    for verb, group, resource in itertools.product(rule["verbs"], rule["apiGroups"], rule["resources"]):
        yield Grant(verb, group, resource, namespace, names)


def not_granted(used: Iterable[Use], granted: Iterable[Grant]) -> list[Use]:
    """Requests without a permission, or that were refused."""
    granted = list(granted)
    return sorted(use for use in used if not use.allowed or not any(grant.covers(use) for grant in granted))


def not_used(granted: Iterable[Grant], used: Iterable[Use]) -> list[Grant]:
    """Permissions that no request used."""
    used = list(used)
    return sorted(grant for grant in granted if not any(grant.covers(use) for use in used))
