"""The permissions that the chart gives are those that muster uses, by the API server's audit log."""

import re

import pytest

from cluster import audit, chart, places, rights
from cluster.installation import VALUES
from cluster.shared import SharedCluster

RELEASED = re.compile("muster-[0-9a-f]{8}:muster")
"""The account of an operator that a release of the chart runs."""


def test_what_muster_asks_for_is_granted_and_what_is_granted_it_asks_for(
    shared_cluster: SharedCluster, *, whole_run: bool
) -> None:
    shared_cluster.up()
    objects = chart.render({"image": {"repository": "unused"}, "namespaces": ["team"], **VALUES})
    granted = rights.grants(objects, f"{chart.NAMESPACE}:muster")
    events = list(audit.events(places.state()))
    releases = {each for each in accounts(events) if RELEASED.fullmatch(each)}
    assert releases or not whole_run
    refused = [(each, use) for each in releases for use in rights.uses(events, each) if not use.allowed]
    assert [(each, use) for each, use in refused if not asks_for_its_lease(each, use)] == []
    # All operators of the run count, because each ran other parts of the jobs' lives.
    used = {(use.verb, use.group, use.resource) for each in accounts(events) for use in rights.uses(events, each)}
    value = {(grant.verb, grant.group, grant.resource) for grant in granted}
    assert sorted(used - value) == []
    if not whole_run:
        unseen = ", ".join(" ".join(filter(None, each)) for each in sorted(value - used))
        pytest.skip(f"unused permissions are found only when all of the cluster's tests run; here: {unseen or '-'}")
    assert sorted(value - used) == []


def test_the_board_asks_only_for_what_is_granted_and_for_all_of_it(
    shared_cluster: SharedCluster, *, whole_run: bool
) -> None:
    shared_cluster.up()
    objects = chart.render({"image": {"repository": "unused"}, "board": {"enabled": True, "logs": True}})
    granted = rights.grants(objects, f"{chart.NAMESPACE}:muster-board")
    value = {(grant.verb, grant.group, grant.resource) for grant in granted}
    events = list(audit.events(places.state()))
    requests = [use for each in accounts(events, "muster-board") for use in rights.uses(events, each)]
    assert [use for use in requests if not use.allowed] == []
    used = {(use.verb, use.group, use.resource) for use in requests}
    assert sorted(used - value) == []
    if not whole_run:
        pytest.skip("unused permissions are found only when all of the cluster's tests run")
    assert sorted(value - used) == []


def asks_for_its_lease(account: str, use: rights.Use) -> bool:
    """Whether an operator asks for its own lease, as it does once more when its release has just been uninstalled."""
    home = account.partition(":")[0]
    return (use.verb, use.resource, use.namespace) == ("get", "leases", home)


def accounts(events: list[audit.Event], name: str = "muster") -> set[str]:
    """Return the accounts of all operators of this cluster: releases, and processes with a release's permissions.

    `name` muster-board: the accounts of all boards.
    """
    names = {event["user"].get("username", "").removeprefix("system:serviceaccount:") for event in events}
    return {each for each in names if each.endswith(f":{name}")}
