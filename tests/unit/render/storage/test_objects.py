from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.s3_uri import InvalidS3Uri, S3Uri, is_s3_uri, parse
from muster.render.storage.errors import StorageError
from muster.render.storage.objects import FileObject, StoredObject, check_case, select_shard, to_file_objects

FIELD = "spec.inputs[0].s3.uri"


def objects(*keys: str, size: int = 1) -> list[StoredObject]:
    return [StoredObject(key, size, '"e"') for key in keys]


def paths(uri: str, *keys: str) -> list[str]:
    return [one.path for one in to_file_objects(objects(*keys), parse(uri), FIELD)]


@pytest.mark.parametrize(
    ("uri", "keys", "expected"),
    [
        ("s3://bkt/train/", ["train/a", "train/x/b"], ["a", "x/b"]),
        ("s3://bkt/train", ["train/a", "train/x/b"], ["a", "x/b"]),
        ("s3://bkt/train", ["train"], ["train"]),
        ("s3://bkt/data/train.csv", ["data/train.csv"], ["train.csv"]),
        ("s3://bkt/data/part-", ["data/part-1", "data/part-2"], ["part-1", "part-2"]),
        ("s3://bkt/train", ["train/a", "training/a"], ["a", "training/a"]),
        ("s3://bkt", ["a", "x/b"], ["a", "x/b"]),
        ("s3://bkt/", ["a"], ["a"]),
    ],
)
def test_keys_become_paths(uri: str, keys: list[str], expected: list[str]) -> None:
    assert paths(uri, *keys) == expected


def test_markers_of_empty_folders_become_nothing() -> None:
    assert to_file_objects(objects("train/", "train/x/", size=0), S3Uri("b", "train/"), FIELD) == ()


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (["t/../../etc/passwd"], "is empty, `.` or `..`"),
        (["t/./a"], "is empty, `.` or `..`"),
        (["t//etc/passwd"], "not the path of a file below"),
        (["t/a//b"], "is empty, `.` or `..`"),
        (["t/a/"], "is empty, `.` or `..`"),
        (["t/a\nb"], "invisible character"),
        (["t/a\\b"], "a \\"),
        (["t/" + "a" * 256], "255 bytes"),
        (["t/a", "t/a/b"], "is an object, and other keys begin"),
    ],
)
def test_keys_that_can_not_be_files_are_named(keys: list[str], says: str) -> None:
    with pytest.raises(StorageError) as caught:
        to_file_objects(objects(*keys), S3Uri("bkt", "t/"), FIELD)
    assert caught.value.reason == "S3KeysUnusable"
    assert says in caught.value.message
    assert caught.value.message.startswith(f"{FIELD}: ")


def test_two_keys_that_become_one_file_are_refused() -> None:
    with pytest.raises(StorageError, match="two keys become the file"):
        to_file_objects(objects("t/t", "t"), S3Uri("bkt", "t"), FIELD)


def test_case_matters_only_where_the_folder_does_not_tell_it() -> None:
    result = to_file_objects(objects("a/X", "a/x"), S3Uri("b", "a/"), FIELD)
    assert [one.path for one in result] == ["X", "x"]
    with pytest.raises(StorageError, match="ignores case"):
        check_case(result, FIELD)
    check_case(result[:1], FIELD)


@given(st.sets(st.text("abc/é", min_size=1, max_size=6), max_size=40), st.integers(1, 8), st.randoms())
def test_shares_are_disjoint_complete_and_even(keys: set[str], nodes: int, chance: Random) -> None:
    listed = [FileObject(stored, stored.key) for stored in objects(*keys)]
    shuffled = sorted(listed, key=lambda _: chance.random())
    shares = [select_shard(shuffled, node, nodes) for node in range(nodes)]
    dealt = [one.path for part in shares for one in part]
    assert sorted(dealt) == sorted(keys)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert shares == [select_shard(listed, node, nodes) for node in range(nodes)]


@pytest.mark.parametrize(
    "text",
    ["", "s3://", "s3:///a", "s3://ab/b", "S3://bucket/a", "s3://bu_cket/a", "s3://-ab/a", "s3://bucket/a#b", "s3://bucket/a\x00",
     "s3://user:pw@bucket/a", "s3://bucket:80/a", "s3://bücket/a", "s3://bucket/..", "s3://bucket/a/.", "s3://a..b/c"],
)  # fmt: skip
def test_what_others_might_read_otherwise_is_no_uri(text: str) -> None:
    assert not is_s3_uri(text)
    with pytest.raises(InvalidS3Uri):
        parse(text)


def test_a_place_below_a_uri_has_single_slashes() -> None:
    assert [str(parse(text).join_path("x", "y")) for text in ("s3://bucket", "s3://bucket/", "s3://bucket/a/")] == [
        "s3://bucket/x/y",
        "s3://bucket/x/y",
        "s3://bucket/a/x/y",
    ]
