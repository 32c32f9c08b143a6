import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.contract.schema import MAX_LAST_LINES, MAX_LINE_CHARS, Metric
from muster_worker.rank_group.lines import MAX_PENDING, LineSplitter, add_prefix
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.tail import TAIL_BYTES, Tail


def split(*chunks: bytes) -> bytes:
    splitter = LineSplitter()
    return b"".join([splitter.feed(chunk) for chunk in chunks]) + splitter.end()


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ((b"one\ntwo\n",), b"one\ntwo\n"),
        ((b"on", b"e\ntw", b"o"), b"one\ntwo\n"),
        ((b"windows\r\n",), b"windows\n"),
        ((b"10%\r", b"50%\r", b"100%\n"), b"100%\n"),
        ((b"10%\r20%\r\n",), b"20%\n"),
        ((b"\r10%", b"\r20%", b"\n"), b"20%\n"),
        ((b"caf\xc3", b"\xa9\n"), "caf\u00e9\n".encode()),
        ((b"caf\xe9\n",), "caf\ufffd\n".encode()),
        ((b"\n\n",), b"\n\n"),
        ((b"",), b""),
    ],
)
def test_lines(chunks: tuple[bytes, ...], lines: bytes) -> None:
    assert split(*chunks) == lines


@pytest.mark.parametrize(
    ("chunks", "overwritten"),
    [
        ((b"\r10%", b"\r20%"), b"10%"),
        ((b"\r10%\r20%\r3",), b"20%"),
        ((b"10%\r", b"20%\r"), b"10%"),
        ((b"\r10%", b"\r2", b"0%"), b""),
        ((b"\r10%", b"\r20%", b"\nnext"), b""),
        ((b"windows\r\nnext",), b""),
    ],
)
def test_a_progress_bar_is_whole_once_it_is_overwritten(chunks: tuple[bytes, ...], overwritten: bytes) -> None:
    splitter = LineSplitter()
    for chunk in chunks:
        splitter.feed(chunk)
    assert splitter.overwritten == overwritten


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r", codec="utf-8")), max_size=8), st.data())
def test_however_text_is_cut_nothing_is_lost(texts: list[str], data: st.DataObject) -> None:
    whole = "\n".join(texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert split(*chunks) == (whole if whole.endswith(b"\n") or not whole else whole + b"\n")


@given(st.lists(st.binary(max_size=200), max_size=10))
def test_any_bytes_become_text_in_whole_lines(chunks: list[bytes]) -> None:
    splitter = LineSplitter()
    for part in [*(splitter.feed(chunk) for chunk in chunks), splitter.end()]:
        assert part == b"" or part.endswith(b"\n")
        assert b"\r" not in part
        part.decode("utf-8")


def test_a_line_without_end_is_passed_on_in_pieces() -> None:
    splitter = LineSplitter()
    text = ("\u00e9" * (1 << 19)).encode()
    passed = b"".join(splitter.feed(text[start : start + 4096]) for start in range(0, len(text), 4096))
    assert len(text) - len(passed.replace(b"\n", b"")) <= MAX_PENDING
    assert (passed + splitter.end()).replace(b"\n", b"") == text
    assert "\ufffd".encode() not in passed


def test_prefix() -> None:
    assert add_prefix(b"a\n\nb\n", b"[x] ") == b"[x] a\n[x] \n[x] b\n"
    assert add_prefix(b"", b"[x] ") == b""


def test_last_lines_are_few_and_short() -> None:
    tail = Tail()
    for number in range(50):
        tail.feed(f"line {number}\n\n".encode())
    tail.feed(b"y" * 2000)
    lines = tail.read_last_lines()
    assert len(lines) == MAX_LAST_LINES
    assert lines[0] == "line 43"
    assert len(lines[-1]) == MAX_LINE_CHARS
    assert lines[-1].endswith("y\u2026")


@given(st.lists(st.integers(0, 3 * TAIL_BYTES), max_size=5))
def test_a_tail_is_bounded(sizes: list[int]) -> None:
    tail = Tail()
    for size in sizes:
        tail.feed(b"z" * size)
    assert len(tail.text) == min(sum(sizes), TAIL_BYTES)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"loss=0.5\nloss=0.25\nother\n", {"loss": 0.25}),
        (b"loss=0.5 loss=0.75\n", {"loss": 0.75}),
        (b"loss=x\nloss=1e-3\n", {"loss": 0.001}),
        (b"loss=inf\n", {}),
        (b"x" * 5000 + b"loss=1\n", {}),
        (b"\xff loss=2\n", {"loss": 2.0}),
    ],
)
def test_metrics(text: bytes, found: dict[str, float]) -> None:
    assert MetricReader((Metric("loss", r"loss=(\S+)"),)).read(text) == found
