"""Attempts that run edited code: where the agent unpacks it, what the ranks see, and which archives it refuses."""

import gzip
import io
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from muster_worker.agent.edited_source import SourceUnusable, move_command, unpack
from muster_worker.contract.schema import (
    AgentPhase,
    CommandKind,
    Report,
)
from muster_worker.contract.source import MAX_SOURCE_FILES, MAX_UNPACKED_SOURCE_BYTES, EditedSource
from support.agent_world import AgentWorld
from support.edited_sources import make_source, pack_source

SCRIPT = """
import os, sys
sys.path.append("lib")
import part
print("attempt", os.environ["MUSTER_ATTEMPT"], "runs", part.NAME, "with", sorted(os.listdir()), flush=True)
"""


def run_attempt(world: AgentWorld, attempt: int, source: EditedSource | None) -> Report:
    world.send(CommandKind.START, attempt, source=source)
    return world.wait(0, lambda report: report.attempt == attempt and report.phase == AgentPhase.ENDED)


def started(world: AgentWorld, *command: str) -> None:
    world.make_plan(*command)
    world.start_agent()
    world.wait(0, lambda report: report.phase == AgentPhase.READY)


def test_each_attempt_runs_the_code_of_its_start(world: AgentWorld) -> None:
    (world.folder / "lib").mkdir()
    (world.folder / "lib" / "part.py").write_text("NAME = 'the original'")
    world.write_script(SCRIPT)
    started(world, sys.executable, "train.py")
    first = pack_source({"train.py": SCRIPT, "lib/part.py": "NAME = 'an edit'", "old.txt": "-"})
    second = pack_source({"train.py": SCRIPT, "lib/part.py": "NAME = 'another edit'"})
    for attempt, source in enumerate((None, first, first, second, None), 1):
        run_attempt(world, attempt, source)
    assert world.leave() == 0

    lines = [line.partition("attempt ")[2] for line in world.log().splitlines() if " runs " in line]
    assert [line.partition(" with ")[0] for line in lines] == [
        "1 runs the original",
        "2 runs an edit",
        "3 runs an edit",
        "4 runs another edit",
        "5 runs the original",
    ]
    assert lines[1].endswith("['lib', 'old.txt', 'train.py']")
    assert lines[3].endswith("['lib', 'train.py']")


def test_a_script_with_an_absolute_path_runs_from_the_source(world: AgentWorld) -> None:
    (world.folder / "app").mkdir()
    script = world.write_script("print('the image')", "app/train.py")
    started(world, sys.executable, script)
    run_attempt(world, 1, pack_source({"app/train.py": "print('the edit')", "train.py": "print('another file')"}))
    world.leave()
    assert "the edit" in world.log()


def test_modules_beside_the_folder_of_the_script_are_the_source_s(world: AgentWorld) -> None:
    (world.folder / "part.py").write_text("NAME = 'the original'")
    (world.folder / "scripts").mkdir()
    script = "import os, part; print('it is', part.NAME, os.environ['SM_MODULE_DIR'] == os.getcwd())"
    world.write_script(script, "scripts/train.py")
    world.plan = replace(world.make_plan(sys.executable, "scripts/train.py"), has_code=True)
    world.start_agent()
    world.wait(0, lambda report: report.phase == AgentPhase.READY)
    for attempt, source in ((1, pack_source({"scripts/train.py": script, "part.py": "NAME = 'an edit'"})), (2, None)):
        run_attempt(world, attempt, source)
    world.leave()
    lines = [line.partition("it is ")[2] for line in world.log().splitlines() if "it is " in line]
    assert lines == ["an edit True", "the original True"]


def test_a_source_with_another_hash_starts_nothing(world: AgentWorld) -> None:
    world.write_script(SCRIPT)
    started(world, sys.executable, "train.py")
    source = replace(pack_source({"train.py": "print('runs')"}), sha256="0" * 64)
    report = run_attempt(world, 1, source)
    assert report.problem is not None
    assert report.problem.reason == "SourceUnusable"
    assert "SHA-256" in report.problem.message
    world.leave()
    assert "runs" not in world.log().splitlines()


@pytest.mark.parametrize(
    ("command", "moved"),
    [
        (("python", "train.py"), ("python", "train.py")),
        (
            ("/usr/bin/python3", "/app/train.py", "/app/lib/part.py"),
            ("/usr/bin/python3", "{}/train.py", "/app/lib/part.py"),
        ),
        (("bash", "/x/../app/lib/part.py"), ("bash", "{}/lib/part.py")),
        (("python", "/app/other.py"), ("python", "/app/other.py")),
        (("python", "/app/.."), ("python", "/app/..")),
    ],
)
def test_the_first_absolute_path_of_a_file_moves(
    tmp_path: Path, command: tuple[str, ...], moved: tuple[str, ...]
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "train.py").touch()
    (tmp_path / "lib" / "part.py").touch()
    assert move_command(command, str(tmp_path)) == tuple(word.format(tmp_path) for word in moved)


def tar(*members: tarfile.TarInfo, content: bytes = b"x") -> bytes:
    stored = io.BytesIO()
    with tarfile.open(fileobj=stored, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(content))
    return stored.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def sparse() -> bytes:
    info = member("a.py")
    info.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(2**40), "GNU.sparse.name": "a.py"}
    return tar(info)


def names_of_names() -> bytes:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2
    return gzip.compress((header.tobuf(tarfile.GNU_FORMAT) + b"a".ljust(512, b"\0")) * 3000)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "parent": (lambda: tar(member("../a.py")), "not the path"),
    "nested parent": (lambda: tar(member("a/../../b.py")), "not the path"),
    "absolute": (lambda: tar(member("/etc/a.py")), "not the path"),
    "itself": (lambda: tar(member(".")), "not the path"),
    "long path": (lambda: tar(member("a/" * 600 + "b")), "not the path"),
    "long name": (lambda: tar(member("a" * 300)), "can't be unpacked"),
    "symbolic link": (lambda: tar(member("a", tarfile.SYMTYPE, "/etc")), "not a regular file"),
    "link, then a file in it": (lambda: tar(member("a", tarfile.SYMTYPE, "/etc"), member("a/b")), "not a regular file"),
    "hard link": (lambda: tar(member("a", tarfile.LNKTYPE, "/etc/passwd")), "not a regular file"),
    "device": (lambda: tar(member("a", tarfile.CHRTYPE)), "not a regular file"),
    "fifo": (lambda: tar(member("a", tarfile.FIFOTYPE)), "not a regular file"),
    "folder": (lambda: tar(member("a", tarfile.DIRTYPE)), "not a regular file"),
    "sparse file": (sparse, "not a regular file"),
    "twice": (lambda: tar(member("a"), member("a")), "can't be unpacked"),
    "file and folder": (lambda: tar(member("a"), member("a/b")), "can't be unpacked"),
    "many files": (lambda: tar(*(member(f"{i}") for i in range(MAX_SOURCE_FILES + 1))), "more than 2000 files"),
    "bomb": (lambda: tar(member("a"), content=bytes(2 * MAX_UNPACKED_SOURCE_BYTES)), "more than 16 MiB"),
    "many bombs": (lambda: tar(*(member(f"{i}") for i in range(30)), content=bytes(2**20)), "more than 16 MiB"),
    "bomb without a file": (lambda: gzip.compress(bytes(2**26)), "no files"),
    "no archive": (lambda: b"#!/bin/sh", "can't be unpacked"),
    "part of an archive": (lambda: tar(member("a"), content=bytes(5000))[:-30], "can't be unpacked"),
    "names of names": (names_of_names, "can't be unpacked"),
    "nothing": (tar, "no files"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_leaves_no_file(tmp_path: Path, name: str) -> None:
    make, why = HOSTILE[name]
    with pytest.raises(SourceUnusable, match=why):
        unpack(make_source(make()), str(tmp_path / "source"))
    assert not list((tmp_path / "source").iterdir())
    assert list(tmp_path.iterdir()) == [tmp_path / "source"]


def test_the_files_of_a_source_may_be_executable_and_no_more(tmp_path: Path) -> None:
    script = member("run.sh")
    script.mode = 0o6755
    folder = Path(unpack(make_source(tar(script)), str(tmp_path)))
    assert (folder / "run.sh").stat().st_mode & 0o7700 == 0o700
    assert [entry.name for entry in tmp_path.iterdir()] == [folder.name]
