import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.render.kubernetes.merge import Fields, merge

NAMES = st.sampled_from(["name", "env", "volumes", "ports", "labels", "tolerations", "a", "b", "args"])
SCALARS: st.SearchStrategy[JSON] = st.one_of(st.booleans(), st.integers(0, 9), st.text("xyz", max_size=2))
VALUES: st.SearchStrategy[JSON] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)
OBJECTS: st.SearchStrategy[Fields] = st.dictionaries(NAMES, VALUES, max_size=4)


@given(OBJECTS)
def test_nothing_over_an_object_and_an_object_over_nothing_are_the_object(fields: Fields) -> None:
    assert merge(fields, {}) == fields
    assert merge({}, fields) == fields


@given(OBJECTS, OBJECTS)
def test_said_twice_is_said_once(below: Fields, above: Fields) -> None:
    once = merge(below, above)
    assert merge(once, above) == once


@given(OBJECTS, OBJECTS)
def test_neither_side_is_changed(below: Fields, above: Fields) -> None:
    before = copy.deepcopy((below, above))
    merge(below, above)
    assert (below, above) == before


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="objects meet"),
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="the later value wins"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null takes a value away"),
        pytest.param(
            {"a": {"b": 1}}, {"a": None}, {"a": {"b": 1}}, id="an empty field is no wish to lose what is in it"
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"env": [{"name": "C", "value": "$(A)"}, {"name": "A", "value": "3"}]},
            {"env": [{"name": "A", "value": "3"}, {"name": "B", "value": "2"}, {"name": "C", "value": "$(A)"}]},
            id="variables keep the order of their definition",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            id="a variable from elsewhere has no value of its own",
        ),
        pytest.param(
            {"volumes": [{"name": "a", "emptyDir": {"medium": "Memory"}}]},
            {"volumes": [{"name": "a", "emptyDir": {"sizeLimit": "1Gi"}}]},
            {"volumes": [{"name": "a", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]},
            id="a volume in more detail",
        ),
        pytest.param(
            {"volumes": [{"name": "a", "emptyDir": {}}]},
            {"volumes": [{"name": "a", "hostPath": {"path": "/d"}}]},
            {"volumes": [{"name": "a", "hostPath": {"path": "/d"}}]},
            id="a volume has one source",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "a", "mountPath": "/d"}]},
            {"volumeMounts": [{"name": "b", "mountPath": "/d/"}, {"name": "b", "mountPath": "/e"}]},
            {"volumeMounts": [{"name": "b", "mountPath": "/d/"}, {"name": "b", "mountPath": "/e"}]},
            id="a mount is its place",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80}]},
            {
                "ports": [
                    {"containerPort": 80, "protocol": "UDP"},
                    {"containerPort": 80, "protocol": "TCP", "name": "web"},
                ]
            },
            {
                "ports": [
                    {"containerPort": 80, "protocol": "TCP", "name": "web"},
                    {"containerPort": 80, "protocol": "UDP"},
                ]
            },
            id="a port is its number and protocol, TCP unless said",
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "b"}, {"key": "a"}]},
            {"tolerations": [{"key": "a"}, {"key": "b"}]},
            id="tolerations add up",
        ),
        pytest.param(
            {"args": ["-x", "1"]}, {"args": ["-y", "1"]}, {"args": ["-y", "1"]}, id="a command line is one thing"
        ),
        pytest.param(
            {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}]},
            {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["b"]}]},
            {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a", "b"]}]},
            id="names of one address add up",
        ),
        pytest.param({"values": [1]}, {"values": [True]}, {"values": [1, True]}, id="true is not 1"),
    ],
)
def test_merge(below: Fields, above: Fields, expected: Fields) -> None:
    assert merge(below, above) == expected
