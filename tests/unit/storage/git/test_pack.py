from __future__ import annotations

import io
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from dulwich.objects import ObjectID
from hypothesis import given
from hypothesis import strategies as some

from fakes.git_server import commit, create_repository, run_git
from muster.storage.git.objects import GitObjects
from muster.storage.git.pack import TooLarge, unpack
from support import packs
from support.packs import BLOB, OFS_DELTA, REF_DELTA, TREE, build_delta, build_entry, copy

PARTS = some.tuples(some.integers(0, 300), some.integers(0, 300))


def pack(*entries: bytes, count: int | None = None) -> io.BytesIO:
    return io.BytesIO(packs.pack(*entries, count=count))


@pytest.fixture
def objects() -> Iterator[GitObjects]:
    result = GitObjects.in_temporary_file()
    yield result
    result.close()


def name(kind: int, content: bytes) -> ObjectID:
    return ObjectID(packs.name(kind, content).encode())


def content_of(objects: GitObjects, wanted: ObjectID) -> bytes | None:
    place = objects.find(wanted)
    return None if place is None else objects.read_content(place)


BASE = b"x" * 1000
BASE_NAME = bytes.fromhex(name(BLOB, BASE).decode())


def test_objects_are_there_by_their_names(objects: GitObjects) -> None:
    unpack(pack(build_entry(BLOB, BASE), build_entry(TREE, b"")), objects, 2000, 2)
    assert content_of(objects, name(BLOB, BASE)) == BASE
    assert content_of(objects, name(TREE, b"")) == b""
    assert objects.find(name(BLOB, b"other")) is None


def test_a_delta_is_made_of_what_comes_before_or_after_it(objects: GitObjects) -> None:
    half = BASE[:500] + b"!"
    value = build_delta(1000, 501, copy(0, 500), b"\x01!")
    again = half[:100]
    of_half = bytes.fromhex(name(BLOB, half).decode())
    unpack(
        pack(
            build_entry(REF_DELTA, build_delta(501, 100, copy(0, 100)), of_half),
            build_entry(REF_DELTA, value, BASE_NAME),
            build_entry(BLOB, BASE),
        ),
        objects,
        10_000,
        3,
    )
    assert content_of(objects, name(BLOB, half)) == half
    assert content_of(objects, name(BLOB, again)) == again


def test_a_delta_of_the_entry_before_it(objects: GitObjects) -> None:
    first = build_entry(BLOB, BASE)
    assert len(first) < 128
    unpack(pack(first, build_entry(OFS_DELTA, build_delta(1000, 3, copy(0, 3)), bytes([len(first)]))), objects, 2000, 2)
    assert content_of(objects, name(BLOB, b"xxx")) == b"xxx"


@given(some.binary(max_size=300), some.lists(some.one_of(some.binary(min_size=1, max_size=127), PARTS), max_size=20))
def test_a_delta_makes_what_its_commands_say(base: bytes, commands: list[bytes | tuple[int, int]]) -> None:
    wanted, said = b"", b""
    for one in commands:
        if isinstance(one, bytes):
            wanted, said = wanted + one, said + bytes([len(one)]) + one
            continue
        offset, size = min(one[0], len(base)), min(one[1], max(0, len(base) - one[0]))
        if size:
            wanted, said = wanted + base[offset : offset + size], said + copy(offset, size)
    objects = GitObjects.in_temporary_file()
    of_base = bytes.fromhex(name(BLOB, base).decode())
    unpack(
        pack(build_entry(BLOB, base), build_entry(REF_DELTA, build_delta(len(base), len(wanted), said), of_base)),
        objects,
        10**6,
        2,
    )
    assert content_of(objects, name(BLOB, wanted)) == wanted
    objects.close()


def test_what_git_packs_is_unpacked(objects: GitObjects, tmp_path: Path) -> None:
    repository = create_repository(tmp_path / "code")
    text = "".join(f"line {number}\n" for number in range(5000))
    for change in range(4):
        commit(repository, {"train.py": text.replace("line 7\n", f"change {change}\n"), f"new-{change}": text})
    packed = subprocess.run(
        ("git", "pack-objects", "--stdout", "--all", "--delta-base-offset"),
        cwd=repository,
        check=True,
        capture_output=True,
    ).stdout
    unpack(io.BytesIO(packed), objects, 10**7, 100)
    names = [line.split()[0] for line in run_git(repository, "rev-list", "--all", "--objects").splitlines()]
    assert len(names) > 12
    for one in names:
        result = objects.find(ObjectID(one.encode()))
        assert result is not None
        assert result.size == int(run_git(repository, "cat-file", "-s", one))


@pytest.mark.parametrize(
    "file",
    [
        pack(build_entry(BLOB, bytes(10_000_000))),
        pack(build_entry(BLOB, bytes(10_000_000), says=5)),
        pack(*[build_entry(BLOB, bytes(600_000))] * 2),
        pack(build_entry(BLOB, BASE), build_entry(REF_DELTA, build_delta(1000, 10**12), BASE_NAME)),
        pack(build_entry(BLOB, BASE), *[build_entry(REF_DELTA, build_delta(1000, 600_000), BASE_NAME)] * 2),
        pack(count=1_000_000),
    ],
    ids=["large", "lying", "together", "delta", "deltas together", "many"],
)
def test_what_would_unpack_to_too_much_is_refused(file: io.BytesIO, objects: GitObjects) -> None:
    with pytest.raises((TooLarge, ValueError)):
        unpack(file, objects, 1_000_000, 1000)


@pytest.mark.parametrize(
    ("commands", "says"),
    [
        ([copy(0, 1000)] * 100, "more data than its base has"),
        ([copy(900, 200)], "more data than its base has"),
        ([bytes([127]) + bytes(127)], "larger than the delta states"),
        ([b"\0"], "unknown command"),
        ([bytes([9])], "in the middle"),
        ([b"\x01!"], "differs from its size in the pack"),
    ],
    ids=["bomb", "beyond its end", "too much", "no command", "cut off", "too little"],
)
def test_a_delta_makes_no_more_and_no_less_than_it_says(commands: list[bytes], says: str, objects: GitObjects) -> None:
    with pytest.raises(ValueError, match=says):
        unpack(
            pack(build_entry(BLOB, BASE), build_entry(REF_DELTA, build_delta(1000, 100, *commands), BASE_NAME)),
            objects,
            10**6,
            9,
        )


def test_a_delta_without_a_base_is_refused(objects: GitObjects) -> None:
    with pytest.raises(ValueError, match="without its base"):
        unpack(pack(build_entry(REF_DELTA, build_delta(1000, 0), BASE_NAME)), objects, 10**6, 9)


@pytest.mark.parametrize(
    "data", [b"", b"PACK", b"<html>not a pack</html>", pack(build_entry(BLOB, b"x" * 99)).getvalue()[:20]]
)
def test_data_that_is_no_pack_is_refused(data: bytes, objects: GitObjects) -> None:
    with pytest.raises(ValueError, match="pack"):
        unpack(io.BytesIO(data), objects, 1000, 10)
