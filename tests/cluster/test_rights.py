"""The permissions that the chart gives are those that muster uses, by the API server's audit log."""

import re
from dataclasses import replace

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
    assert [(each, use) for each in sorted(releases) for use in find_refused(rights.uses(events, each))] == []
    # All operators of the run count, because each ran other parts of the jobs' lives.
    uses = [(each, use) for each in sorted(accounts(events)) for use in rights.uses(events, each)]
    used = {(use.verb, use.group, use.resource) for _, use in uses}
    value = {(grant.verb, grant.group, grant.resource) for grant in granted}
    assert [(each, use) for each, use in uses if (use.verb, use.group, use.resource) not in value] == []
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


def find_refused(uses: frozenset[rights.Use]) -> list[rights.Use]:
    """Return what an account never got: while its release is uninstalled, an operator is refused what it had."""
    return sorted(use for use in uses if not use.allowed and replace(use, allowed=True) not in uses)


def accounts(events: list[audit.Event], name: str = "muster") -> set[str]:
    """Return the accounts of all operators of this cluster: releases, and processes with a release's permissions.

    `name` muster-board: the accounts of all boards.
    """
    names = {event["user"].get("username", "").removeprefix("system:serviceaccount:") for event in events}
    return {each for each in names if each.endswith(f":{name}")}
