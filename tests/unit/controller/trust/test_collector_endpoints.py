"""The EndpointSlices with the leader's addresses, as values."""

from typing import Any

import pytest

from muster.controller.trust.collector_endpoints import (
    LEADER_TERM_ANNOTATION,
    CollectorEndpoints,
    is_current,
    make_endpoint_slices,
    read_leader_term,
)


def endpoints(*addresses: str) -> CollectorEndpoints:
    return CollectorEndpoints("muster-system", "muster-collector", addresses, 8443)


def test_each_family_has_a_slice_of_the_service() -> None:
    first, second = make_endpoint_slices(endpoints("10.0.0.7", "fd00::7"), "uid-1", 12)

    assert (first["addressType"], second["addressType"]) == ("IPv4", "IPv6")
    assert first["endpoints"] == [{"addresses": ["10.0.0.7"], "conditions": {"ready": True}}]
    assert second["endpoints"] == [{"addresses": ["fd00::7"], "conditions": {"ready": True}}]
    assert first["ports"] == [{"name": "collector", "port": 8443, "protocol": "TCP"}]
    assert first["metadata"] == {
        "name": "muster-collector-ipv4",
        "namespace": "muster-system",
        "labels": {
            "kubernetes.io/service-name": "muster-collector",
            "endpointslice.kubernetes.io/managed-by": "muster",
        },
        "annotations": {LEADER_TERM_ANNOTATION: "12"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "muster-collector", "uid": "uid-1"}],
    }


@pytest.mark.parametrize(
    ("annotations", "leader_term"),
    [
        ({LEADER_TERM_ANNOTATION: "7"}, 7),
        ({}, -1),
        (None, -1),
        ({LEADER_TERM_ANNOTATION: "x"}, -1),
        ({LEADER_TERM_ANNOTATION: "9" * 5000}, -1),
        ({LEADER_TERM_ANNOTATION: 7}, -1),
    ],
)
def test_the_leader_term_is_what_a_leader_wrote(annotations: Any, leader_term: int) -> None:
    assert read_leader_term({"metadata": {"annotations": annotations}}) == leader_term


def test_what_another_changed_is_not_as_wanted() -> None:
    [wanted] = make_endpoint_slices(endpoints("10.0.0.7"), "uid-1", 12)
    [later] = make_endpoint_slices(endpoints("10.0.0.7"), "uid-1", 13)
    [moved] = make_endpoint_slices(endpoints("10.0.0.8"), "uid-1", 12)
    as_stored: Any = {**wanted, "endpoints": [{"addresses": ["10.0.0.7"], "conditions": {"ready": True}, "zone": None}]}

    assert is_current(as_stored, wanted)
    assert not is_current(later, wanted)
    assert not is_current(moved, wanted)
    assert not is_current({**wanted, "endpoints": None}, wanted)
