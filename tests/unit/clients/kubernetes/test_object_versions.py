from hypothesis import given
from hypothesis import strategies as st

from muster.clients.kubernetes.client import Change, ChangeType
from muster.clients.kubernetes.object_versions import ObjectVersions, get_object_key
from muster.objects.kubernetes.kinds import Object


def thing(name: str, uid: str = "u", version: str = "1", **more: str) -> Object:
    metadata: Object = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version, **more}
    return {"kind": "Pod", "metadata": dict(metadata), "spec": {"big": "x" * 100}}


def changes_of(current: ObjectVersions, kind: ChangeType, item: Object) -> list[ChangeType]:
    return [change.type for change in current.record(Change(kind, item))]


def test_news_is_reported_once() -> None:
    current = ObjectVersions()
    assert changes_of(current, "ADDED", thing("a")) == ["ADDED"]
    assert changes_of(current, "ADDED", thing("a")) == []
    assert changes_of(current, "ADDED", thing("a", version="2")) == ["MODIFIED"]
    assert changes_of(current, "MODIFIED", thing("b")) == ["ADDED"]


def test_a_deletion_is_reported_whole_and_once() -> None:
    current = ObjectVersions()
    current.record(Change("ADDED", thing("a")))
    deletion = Change("DELETED", thing("a", version="2"))
    assert current.record(deletion) == (deletion,)
    assert current.record(deletion) == ()


def test_another_of_the_same_name_is_another() -> None:
    current = ObjectVersions()
    current.record(Change("ADDED", thing("a", uid="first")))
    second = thing("a", uid="second")
    remains: Object = {
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "ns", "uid": "first", "resourceVersion": "1"},
    }
    assert current.record(Change("ADDED", second)) == (Change("DELETED", remains), Change("ADDED", second))
    assert changes_of(current, "DELETED", thing("a", uid="first")) == []


Names = st.sampled_from("abc")
Worlds = st.dictionaries(Names, st.tuples(st.sampled_from(["u", "v"]), st.sampled_from(["1", "2"])))


@given(st.lists(Worlds, max_size=6))
def test_the_reported_changes_reproduce_every_state(worlds: list[dict[str, tuple[str, str]]]) -> None:
    current = ObjectVersions()
    view: dict[str, tuple[str, str]] = {}
    for world in worlds:
        items = [thing(name, uid, version) for name, (uid, version) in world.items()]
        changes = [change for item in items for change in current.record(Change("ADDED", item))]
        changes += current.keep_only(frozenset(get_object_key(item) for item in items))
        for change in changes:
            metadata = change.object["metadata"]
            assert isinstance(metadata, dict)
            name, uid = str(metadata["name"]), str(metadata["uid"])
            if change.type == "DELETED":
                assert view.pop(name)[0] == uid
            else:
                assert (name in view) == (change.type == "MODIFIED")
                view[name] = (uid, str(metadata["resourceVersion"]))
        assert view == world
