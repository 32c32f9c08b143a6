"""What a rank tells about torch's records, and what the agent accepts as an answer."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from muster_worker.contract.collectives import MAX_COLLECTIVE_CHARS, MAX_GROUPS, GroupCollective
from muster_worker.rank.collectives import ANSWER_SUFFIX, REQUEST_SUFFIX
from muster_worker.rank.flight_recorder import summarize
from muster_worker.rank_group.collective_dump import MAX_ANSWER_BYTES, capture_collectives

DEFAULT = ("0", "default_pg")
SECONDS = 10.0


def entry(sequence: int, operation: str = "gloo:all_reduce", **more: Any) -> dict[str, Any]:
    """Return a record as torch writes it, of a collective that has completed."""
    plain = {"process_group": DEFAULT, "is_p2p": False, "state": "scheduled", "retired": True, "time_created_ns": 1}
    return {"collective_seq_id": sequence, "profiling_name": operation, **plain, **more}


def summary(group: str, operation: str, sequence: int, pending: tuple[str, int] | None = None) -> dict[str, object]:
    name, number = pending or (None, None)
    return {
        "group": group,
        "operation": operation,
        "sequence": sequence,
        "pending_operation": name,
        "pending_sequence": number,
    }


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        ([], []),
        ([entry(1), entry(2)], [summary("0 (default_pg)", "all_reduce", 2)]),
        (
            [entry(1), entry(2, "nccl:broadcast", retired=False)],
            [summary("0 (default_pg)", "broadcast", 2, ("broadcast", 2))],
        ),
        # The GPU works on an earlier collective than the last one that the script has entered.
        (
            [
                entry(1, state="completed", retired=False),
                entry(2, "nccl:all_gather", retired=False),
                entry(3, "nccl:reduce", retired=False, state="started"),
            ],
            [summary("0 (default_pg)", "reduce", 3, ("all_gather", 2))],
        ),
        # A record before the last completed one has completed too: those of a group complete in their order.
        ([entry(1, retired=False), entry(2)], [summary("0 (default_pg)", "all_reduce", 2)]),
        ([entry(1), entry(1, "gloo:send", is_p2p=True, retired=False)], [summary("0 (default_pg)", "all_reduce", 1)]),
        (
            [entry(9), entry(4, process_group=("1", "undefined"), time_created_ns=2)],
            [summary("1", "all_reduce", 4), summary("0 (default_pg)", "all_reduce", 9)],
        ),
    ],
)
def test_the_last_collective_of_each_group(entries: list[dict[str, Any]], wanted: list[dict[str, object]]) -> None:
    assert summarize(entries) == wanted


def test_only_the_groups_used_last_count() -> None:
    groups = [entry(1, process_group=(str(number), ""), time_created_ns=number) for number in range(20)]
    assert [found["group"] for found in summarize(groups)] == ["19", "18", "17", "16"]


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """A process that writes this answer to each request for `path`."""
    os.mkfifo(f"{path}{REQUEST_SUFFIX}")
    pipe = os.open(f"{path}{REQUEST_SUFFIX}", os.O_RDWR)

    def serve() -> None:
        os.read(pipe, 64)
        new = Path(f"{path}.new")
        new.write_bytes(answer)
        new.rename(f"{path}{ANSWER_SUFFIX}")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        os.close(pipe)


def capture(path: Path, answer: bytes) -> tuple[GroupCollective, ...]:
    with answering(path, answer):
        return capture_collectives({7: str(path)}, SECONDS).get(7, ())


def test_the_agent_reads_an_answer(tmp_path: Path) -> None:
    groups = summarize([entry(1), entry(2, retired=False)])
    answer = json.dumps({"groups": groups}).encode()
    wanted = GroupCollective("0 (default_pg)", "all_reduce", 2, "all_reduce", 2)
    # An answer to an earlier request does not count.
    (tmp_path / f"rank{ANSWER_SUFFIX}").write_text("old")
    assert capture(tmp_path / "rank", answer) == (wanted,)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[" * 5000,
        b'{"groups": 3}',
        b'{"groups": [{"group": "0", "operation": "all_reduce", "sequence": 1e400}]}',
        b'{"groups": [{"group": "0", "operation": "all_reduce", "sequence": NaN}]}',
        b'{"groups": [{"group": "0", "operation": "all_reduce", "sequence": -1}]}',
        b'{"groups": [{"group": "0", "operation": "all_reduce", "sequence": ' + b"9" * 400 + b"}]}",
        b'{"groups": [' + b" " * MAX_ANSWER_BYTES + b"]}",
    ],
)
def test_forged_answers_count_for_nothing(tmp_path: Path, answer: bytes) -> None:
    assert capture(tmp_path / "rank", answer) == ()


def test_an_answer_is_short_and_printable(tmp_path: Path) -> None:
    long = {"group": "\x1b[2J" + "g" * 300, "operation": "o" * 300, "sequence": 2**62}
    found = capture(tmp_path / "rank", json.dumps({"groups": [long] * (MAX_GROUPS + 1)}).encode())
    assert len(found) == MAX_GROUPS
    assert found[0].group == " [2J" + "g" * (MAX_COLLECTIVE_CHARS - 4)
    assert found[0].operation == "o" * MAX_COLLECTIVE_CHARS


def test_files_of_another_kind_are_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / f"plain{REQUEST_SUFFIX}").write_text("kept")
    (tmp_path / f"link{REQUEST_SUFFIX}").symlink_to(victim)
    os.mkfifo(tmp_path / f"unread{REQUEST_SUFFIX}")
    files = {number: str(tmp_path / name) for number, name in enumerate(("plain", "link", "unread", "none", "a\0b"))}
    assert capture_collectives(files, SECONDS) == {}
    assert (victim.read_text(), (tmp_path / f"plain{REQUEST_SUFFIX}").read_text()) == ("kept", "kept")


def test_a_rank_that_does_not_answer_costs_only_the_time_limit(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"rank{REQUEST_SUFFIX}")
    reader = os.open(tmp_path / f"rank{REQUEST_SUFFIX}", os.O_RDWR)
    try:
        assert capture_collectives({0: str(tmp_path / "rank")}, 0.05) == {}
    finally:
        os.close(reader)
