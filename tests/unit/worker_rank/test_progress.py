import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.rank import progress_file, user_report
from muster_worker.rank.optimizer_steps import StepCounter
from muster_worker.rank_group import progress
from muster_worker.rank_group.progress import NoStepReason, Progress, find_no_step_reason
from support.rows import check_rows

CLAIMED = Progress(pid=7)


WHY_THERE_IS_NO_STEP_ROWS: list[tuple[Progress, list[str], str | None]] = [
    (Progress(), ["sh", "train.sh"], NoStepReason.NOT_PYTHON),
    (Progress(), ["/opt/bin/train"], NoStepReason.NOT_PYTHON),
    (Progress(), [], NoStepReason.NOT_PYTHON),
    (Progress(), ["python", "train.py"], NoStepReason.NOT_HOOKED),
    (Progress(), ["python", "train.py", "-I"], NoStepReason.NOT_HOOKED),
    (Progress(), ["python", "-c", "pass", "-S"], NoStepReason.NOT_HOOKED),
    (Progress(), ["python", "-m", "train", "-E"], NoStepReason.NOT_HOOKED),
    (Progress(), ["python", "-uc-S"], NoStepReason.NOT_HOOKED),
    (Progress(), ["python", "-X", "-S", "train.py"], NoStepReason.NOT_HOOKED),
    (Progress(), ["python", "-WI", "train.py"], NoStepReason.NOT_HOOKED),
    (Progress(), ["python", "-", "-I"], NoStepReason.NOT_HOOKED),
    (Progress(), ["python", "--check-hash-based-pycs", "always"], NoStepReason.NOT_HOOKED),
    (Progress(), ["python3.11", "-S", "train.py"], NoStepReason.PYTHON_ISOLATED),
    (Progress(), ["/usr/bin/python3", "-u", "-I", "train.py"], NoStepReason.PYTHON_ISOLATED),
    (Progress(), ["python", "-uE", "train.py"], NoStepReason.PYTHON_ISOLATED),
    (Progress(), ["python", "-X", "dev", "-I", "train.py"], NoStepReason.PYTHON_ISOLATED),
    (CLAIMED, ["python", "train.py"], NoStepReason.NO_TORCH),
    (Progress(pid=7, flags=1), ["python", "train.py"], NoStepReason.TORCH_TOO_OLD),
    (Progress(pid=7, flags=3), ["python", "train.py"], None),
    (Progress(pid=7, reported_step=0), ["python", "train.py"], None),
]


def test_why_there_is_no_step() -> None:
    def check_row(seen: Progress, command: list[str], expected: str | None) -> None:
        assert find_no_step_reason(seen, command) == expected

    check_rows(WHY_THERE_IS_NO_STEP_ROWS, lambda row: check_row(*row))


@pytest.mark.parametrize(
    ("seen", "step", "at"),
    [
        (Progress(), None, None),
        (Progress(flags=3), 0, None),
        (Progress(flags=3, optimizer_steps=5, optimizer_stepped_at=2.0), 5, 2.0),
        (Progress(flags=3, optimizer_steps=5, optimizer_stepped_at=2.0, reported_step=9, reported_at=1.0), 9, 2.0),
        (Progress(reported_at=1.0, metrics={"loss": 1.0}), None, 1.0),
    ],
)
def test_a_reported_step_comes_first(seen: Progress, step: int | None, at: float | None) -> None:
    assert (seen.step, seen.stepped_at) == (step, at)


@pytest.mark.parametrize(
    ("seen", "at"),
    [
        (Progress(), None),
        # The script has reported the step that it resumes from, and has made none.
        (Progress(flags=3, reported_step=6, first_reported_step=6, reported_at=1.0), None),
        (Progress(reported_step=7, first_reported_step=6, advanced_at=3.0, reported_at=4.0), 3.0),
        (Progress(flags=3, optimizer_steps=9, optimizer_first_stepped_at=2.0, advanced_at=3.0), 2.0),
    ],
)
def test_the_first_step_is_the_first_one_made(seen: Progress, at: float | None) -> None:
    assert seen.first_stepped_at == at


def test_the_script_s_first_step_is_kept(tmp_path: Path) -> None:
    path, writer = _claimed(tmp_path)
    user_report.start(writer, path)
    try:
        user_report.report(loss=1.0)
        assert progress.read(path).first_reported_step is None
        for step in (6, 6, 7, 8):
            user_report.report(step=step)
            seen = progress.read(path)
            assert (seen.reported_step, seen.first_reported_step) == (step, 6)
            assert (seen.advanced_at is None) == (step == 6)
        assert seen.advanced_at is not None
        assert seen.reported_at is not None
        assert seen.advanced_at < seen.reported_at
    finally:
        user_report.stop()


def test_the_script_s_total_is_the_last_one(tmp_path: Path) -> None:
    path, writer = _claimed(tmp_path)
    user_report.start(writer, path)
    try:
        user_report.report(step=6, total_steps=100)
        user_report.report(step=7, loss=0.5)
        assert (progress.read(path).reported_step, progress.read(path).total_steps) == (7, 100)
        user_report.report(total_steps=50)
        assert (progress.read(path).reported_step, progress.read(path).total_steps) == (7, 50)
    finally:
        user_report.stop()


@pytest.mark.parametrize("total", ["0", "-1", "1.5", "true", "99999999999999999999"])
def test_a_forged_total_is_none(tmp_path: Path, total: str) -> None:
    path, writer = _claimed(tmp_path)
    writer.write_report(f'{{"step":3,"total_steps":{total},"metrics":{{}}}}'.encode(), 1.0)
    assert progress.read(path).total_steps is None


FORGED = [
    b'{"step":3,"first_step":-1,"advanced_at":1.0,"metrics":{}}',
    b'{"step":3,"first_step":1e3,"advanced_at":-1.0,"metrics":{}}',
    b'{"step":3,"first_step":true,"advanced_at":NaN,"metrics":{}}',
    b'{"step":3,"first_step":99999999999999999999,"advanced_at":1e999,"metrics":{}}',
    b'{"step":3,"metrics":{}}',
]


@pytest.mark.parametrize("report", FORGED)
def test_a_forged_first_step_is_none(tmp_path: Path, report: bytes) -> None:
    path, writer = _claimed(tmp_path)
    writer.write_report(report, 1.0)
    seen = progress.read(path)
    assert (seen.reported_step, seen.first_reported_step) == (3, None)
    assert seen.advanced_at in (None, 1.0)


def _claimed(folder: Path) -> tuple[str, progress_file.Writer]:
    path = str(folder / "rank-0-1.progress")
    progress_file.create(path)
    writer = progress_file.claim(path)
    assert writer is not None
    return path, writer


def test_a_file_is_read_as_written(tmp_path: Path) -> None:
    path, writer = _claimed(tmp_path)
    StepCounter(writer, lambda: None)(object(), (), {})
    writer.write_report(b'{"step":3,"metrics":{"loss":0.25}}', 12.5)
    seen = progress.read(path)
    assert (seen.pid, seen.optimizer_steps, seen.reported_step, seen.reported_at) == (os.getpid(), 1, 3, 12.5)
    assert (dict(seen.metrics), seen.stacks_fd) == ({"loss": 0.25}, None)


def test_a_living_claimer_keeps_its_file_and_a_dead_one_does_not(tmp_path: Path) -> None:
    path, writer = _claimed(tmp_path)
    writer.words[progress_file.WORD_STEPS] = 9
    assert progress_file.claim(path) is None
    writer.words[progress_file.WORD_PID_START] += 1  # another process had this pid
    assert progress_file.claim(path) is not None
    assert progress.read(path).optimizer_steps == 0


def test_a_new_wrapper_with_an_old_pid_starts_anew(tmp_path: Path) -> None:
    path, _ = _claimed(tmp_path)
    progress_file.create(path)
    assert progress.read(path) == Progress()


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"\0" * 4096, b"x" * 4096])
def test_what_is_not_a_progress_file_reads_as_unclaimed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert progress.read(str(tmp_path / "file")) == Progress()
    assert progress.read(str(tmp_path / "missing")) == Progress()


MAGIC = progress_file.MAGIC.to_bytes(8, "little")


@given(st.binary(max_size=progress_file.REPORT_START))
def test_no_bytes_upset_the_reader(data: bytes) -> None:
    seen = progress.parse((MAGIC + data).ljust(progress_file.SIZE, b"\0"))
    assert seen is None or 0 <= seen.optimizer_steps <= progress.MAX_STEP
    assert seen is None or 0 < (seen.busy_seconds or 1.0) <= progress.MAX_BUSY_SECONDS


@given(st.binary(max_size=200) | st.from_regex(rb'\{"step":.{0,20},"metrics":.{0,40}\}', fullmatch=True))
def test_no_report_upsets_the_reader(report: bytes) -> None:
    header = bytearray(progress_file.REPORT_START)
    header[:8] = MAGIC
    header[64:72] = progress_file.check_word(report).to_bytes(8, "little")
    seen = progress.parse(bytes(header) + report.ljust(progress_file.MAX_REPORT_BYTES, b"\0"))
    assert seen is not None
    assert all(type(value) is float for value in seen.metrics.values())


def test_a_torn_report_is_noticed(tmp_path: Path) -> None:
    path, writer = _claimed(tmp_path)
    writer.write_report(b'{"step":3,"metrics":{}}', 1.0)
    writer.mapping[progress_file.REPORT_START + 8 : progress_file.REPORT_START + 9] = b"4"
    assert progress.parse(Path(path).read_bytes()) is None


ROUNDS = [("AAAA", 4), ("ABAB", 2), ("ABBA", 2), ("DDDDDGDDDDDG", 10), ("ABCABC", 2), ("AAAABBB", 6)]


@pytest.mark.parametrize(("order", "steps"), ROUNDS)
def test_a_step_is_a_round_of_the_optimizers(tmp_path: Path, order: str, steps: int) -> None:
    path, writer = _claimed(tmp_path)
    counter = StepCounter(writer, lambda: None)
    optimizers = {name: object() for name in order}
    for name in order:
        counter(optimizers[name], (), {})
    seen = progress.read(path)
    assert seen.optimizer_steps == steps
    assert seen.optimizer_first_stepped_at is not None
    assert seen.optimizer_stepped_at is not None
    assert 0 < seen.optimizer_first_stepped_at < seen.optimizer_stepped_at
    counter.stop()
    counter(optimizers["A" if "A" in order else "D"], (), {})
    assert progress.read(path).optimizer_steps == steps


def test_counting_a_step_costs_less_than_three_microseconds(tmp_path: Path) -> None:
    _, writer = _claimed(tmp_path)
    counter, optimizer = StepCounter(writer, lambda: None), object()

    def one_run() -> float:
        start = time.perf_counter()
        for _ in range(1000):
            counter(optimizer, (), {})
        return (time.perf_counter() - start) / 1000

    assert min(one_run() for _ in range(50)) < 3e-6
