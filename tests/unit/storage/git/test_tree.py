"""Trees that git would not write, but a repository's server may send."""

from collections.abc import Iterator

import pytest
from dulwich.objects import Blob, ObjectID, ShaFile, Tree

from muster.render.storage.errors import StorageError
from muster.storage.git.objects import GitObjects
from muster.storage.git.tree import list_files

FOLDER = 0o040000
FILE = 0o100644


@pytest.fixture
def objects() -> Iterator[GitObjects]:
    result = GitObjects.in_temporary_file()
    yield result
    result.close()


def store(objects: GitObjects, one: ShaFile) -> None:
    content = one.as_raw_string()
    assert objects.add(one.type_num, len(content), [content]) == one.id


def within_one_another(objects: GitObjects, tree: Tree, folders: int, times: int) -> ObjectID:
    """Return the outermost of this many folders, each of which contains the next one this many times."""
    store(objects, tree)
    for _ in range(folders):
        outer = Tree()
        for number in range(times):
            outer.add(b"%d" % number, FOLDER, tree.id)
        store(objects, outer)
        tree = outer
    return tree.id


def test_more_folders_than_anybody_counts_are_refused(objects: GitObjects) -> None:
    outermost = within_one_another(objects, Tree(), folders=60, times=10)
    with pytest.raises(StorageError) as caught:
        list(list_files(objects, outermost, "spec.source.git"))
    assert caught.value.message == "spec.source.git can't be used: the commit has more than 30000 folders"


def test_a_folder_that_stands_in_two_places_has_its_files_in_both(objects: GitObjects) -> None:
    blob, inner = Blob.from_string(b"x = 1\n"), Tree()
    store(objects, blob)
    inner.add(b"data.py", FILE, blob.id)
    outermost = within_one_another(objects, inner, folders=2, times=2)
    paths = [path for path, _ in list_files(objects, outermost, "spec.source.git")]
    assert paths == ["0/0/data.py", "0/1/data.py", "1/0/data.py", "1/1/data.py"]
