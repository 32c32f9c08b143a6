import pytest

from muster.kube.client import Listing
from muster.runtime.cluster.resource import read_resource
from muster.runtime.cluster.sweep import vanished
from unit.runtime_cluster.cluster_resources import resource


@pytest.mark.parametrize(
    ("known", "listed", "as_of", "gone"),
    [
        ([("a", 10)], ["a"], "50", ()),
        ([("a", 10), ("b", 20)], ["b"], "50", ("a",)),
        # made after the list
        ([("a", 60)], [], "50", ()),
        # as old as the list
        ([("a", 50)], [], "50", ("a",)),
        # there, and not heard of yet
        ([], ["a"], "50", ()),
    ],
)
def test_what_is_known_and_not_there_has_vanished(
    known: list[tuple[str, int]], listed: list[str], as_of: str, gone: tuple[str, ...]
) -> None:
    resources = [read_resource(resource(uid=uid, version=version)) for uid, version in known]
    assert vanished(resources, Listing(tuple(resource(uid=uid) for uid in listed), as_of)) == gone
