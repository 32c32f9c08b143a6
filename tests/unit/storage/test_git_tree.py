"""Trees that no git would write: whoever runs a repository may send any."""

import pytest
from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, ObjectID, Tree

from muster.storage.git_tree import files_of
from muster.storage.trouble import StorageTrouble

FOLDER = 0o040000
FILE = 0o100644


def within_one_another(store: MemoryObjectStore, tree: Tree, folders: int, times: int) -> ObjectID:
    """The outermost of so many folders, each of which has the next so many times."""
    store.add_object(tree)
    for _ in range(folders):
        outer = Tree()
        for number in range(times):
            outer.add(b"%d" % number, FOLDER, tree.id)
        store.add_object(outer)
        tree = outer
    return tree.id


def test_more_folders_than_anybody_counts_are_refused() -> None:
    store = MemoryObjectStore()
    outermost = within_one_another(store, Tree(), folders=60, times=10)
    with pytest.raises(StorageTrouble) as caught:
        list(files_of(store, outermost, "spec.source.git"))
    assert caught.value.message == "spec.source.git can't be used: it has more than 30000 folders"


def test_a_folder_that_stands_in_two_places_has_its_files_in_both() -> None:
    store, blob, inner = MemoryObjectStore(), Blob.from_string(b"x = 1\n"), Tree()
    store.add_object(blob)
    inner.add(b"data.py", FILE, blob.id)
    outermost = within_one_another(store, inner, folders=2, times=2)
    paths = [path for path, _ in files_of(store, outermost, "spec.source.git")]
    assert paths == ["0/0/data.py", "0/1/data.py", "1/0/data.py", "1/1/data.py"]
