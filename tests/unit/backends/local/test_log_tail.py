"""The lines of a log file that grows: none is lost, unless the reader may miss some."""

import asyncio
import pathlib

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.backends.local.log_tail import BACKLOG_BYTES, MAX_LINE_BYTES, LineReader, LogTail


async def read(path: pathlib.Path, chunks: list[bytes], max_backlog_bytes: int | None = None) -> list[str]:
    """Return the lines that a reader gets while these chunks are written to a log that has a line already."""
    with path.open("wb") as file:
        file.write(b"of another attempt\n")
    lines: list[str] = []
    ended = asyncio.Event()
    reading = asyncio.create_task(
        LogTail(0, path, LineReader(lambda _, line: lines.append(line), max_backlog_bytes)).follow(ended)
    )
    with path.open("ab", buffering=0) as file:
        for chunk in chunks:
            file.write(chunk)
            await asyncio.sleep(0)
    ended.set()
    await reading
    return lines


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.lists(st.binary(max_size=20)))
async def test_lines_do_not_depend_on_how_the_bytes_came(tmp_path: pathlib.Path, chunks: list[bytes]) -> None:
    expected = b"".join(chunks).split(b"\n")
    lines = [line.decode("utf-8", "replace") for line in (expected if expected[-1] else expected[:-1])]
    assert await read(tmp_path / "log", chunks) == lines


async def test_an_endless_line_does_not_fill_the_memory(tmp_path: pathlib.Path) -> None:
    lines = await read(tmp_path / "log", [b"x" * (3 * MAX_LINE_BYTES)])
    assert "".join(lines) == "x" * (3 * MAX_LINE_BYTES)
    assert max(map(len, lines)) <= 2 * MAX_LINE_BYTES


async def test_a_terminal_gets_the_last_lines_and_the_number_of_the_others(tmp_path: pathlib.Path) -> None:
    count = 4 * BACKLOG_BYTES // 100
    chunk = b"".join(f"line {number} {'x' * 90}\n".encode() for number in range(count)) + b"the error\n"
    first, *lines = await read(tmp_path / "log", [chunk], BACKLOG_BYTES)
    left_out = count + 1 - len(lines)
    assert first == f"[muster] {left_out:,} lines are left out here; {tmp_path / 'log'} has all of them"
    assert lines == chunk.decode().splitlines()[left_out:]
    assert left_out > 0


async def test_without_a_limit_no_line_is_left_out(tmp_path: pathlib.Path) -> None:
    chunk = b"a line of some length\n" * (BACKLOG_BYTES // 5)
    assert len(await read(tmp_path / "log", [chunk, b"the error"])) == BACKLOG_BYTES // 5 + 1
