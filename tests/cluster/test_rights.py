"""The permissions that the chart gives are those that muster uses, by the API server's audit log."""

import pytest
import yaml

from cluster import audit, chart, places, rights
from cluster.installation import RELEASE, Installation
from cluster.shared import SharedCluster


def test_what_muster_asks_for_is_granted_and_what_is_granted_it_asks_for(
    installed_operator: Installation, shared_cluster: SharedCluster, *, whole_run: bool
) -> None:
    shared_cluster.up()
    manifest = installed_operator.helm("get", "manifest", RELEASE, f"--namespace={installed_operator.system}")
    account = f"{installed_operator.system}:muster"
    granted = rights.grants((each for each in yaml.safe_load_all(manifest) if each), account)
    events = list(audit.events(places.state()))
    assert granted
    assert rights.not_granted(rights.uses(events, account), granted) == []
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


def accounts(events: list[audit.Event], name: str = "muster") -> set[str]:
    """Return the accounts of all operators of this cluster: releases, and processes with a release's permissions.

    `name` muster-board: the accounts of all boards.
    """
    names = {event["user"].get("username", "").removeprefix("system:serviceaccount:") for event in events}
    return {each for each in names if each.endswith(f":{name}")}
