from hypothesis import given
from hypothesis import strategies as st

from muster.kube.client import Change, ChangeType
from muster.kube.kinds import Object
from muster.kube.object_versions import ObjectVersions, key


def thing(name: str, uid: str = "u", version: str = "1", **more: str) -> Object:
    metadata: Object = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version, **more}
    return {"kind": "Pod", "metadata": dict(metadata), "spec": {"big": "x" * 100}}


def told(known: ObjectVersions, kind: ChangeType, item: Object) -> list[ChangeType]:
    return [change.type for change in known.take(Change(kind, item))]


def test_what_is_new_is_told_once() -> None:
    known = ObjectVersions()
    assert told(known, "ADDED", thing("a")) == ["ADDED"]
    assert told(known, "ADDED", thing("a")) == []
    assert told(known, "ADDED", thing("a", version="2")) == ["MODIFIED"]
    assert told(known, "MODIFIED", thing("b")) == ["ADDED"]


def test_what_is_deleted_is_told_whole_and_once() -> None:
    known = ObjectVersions()
    known.take(Change("ADDED", thing("a")))
    gone = Change("DELETED", thing("a", version="2"))
    assert known.take(gone) == (gone,)
    assert known.take(gone) == ()


def test_another_of_the_same_name_is_another() -> None:
    known = ObjectVersions()
    known.take(Change("ADDED", thing("a", uid="first")))
    second = thing("a", uid="second")
    remains: Object = {
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "ns", "uid": "first", "resourceVersion": "1"},
    }
    assert known.take(Change("ADDED", second)) == (Change("DELETED", remains), Change("ADDED", second))
    assert told(known, "DELETED", thing("a", uid="first")) == []


Names = st.sampled_from("abc")
Worlds = st.dictionaries(Names, st.tuples(st.sampled_from(["u", "v"]), st.sampled_from(["1", "2"])))


@given(st.lists(Worlds, max_size=6))
def test_who_follows_what_is_told_knows_every_world(worlds: list[dict[str, tuple[str, str]]]) -> None:
    known = ObjectVersions()
    view: dict[str, tuple[str, str]] = {}
    for world in worlds:
        items = [thing(name, uid, version) for name, (uid, version) in world.items()]
        changes = [change for item in items for change in known.take(Change("ADDED", item))]
        changes += known.keep_only(frozenset(key(item) for item in items))
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
