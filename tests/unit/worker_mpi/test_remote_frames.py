"""Frames are decoded as they were encoded, however the stream is split; invalid ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.remote import frames
from muster_worker.remote.client import split_arguments
from muster_worker.remote.frames import BadFrame, Reader

KINDS = (frames.OUT, frames.ERR, frames.EXITED, frames.SIGNALLED, frames.REFUSED)
FRAMES = st.lists(st.tuples(st.sampled_from([frames.OUT, frames.ERR, frames.REFUSED]), st.binary(max_size=300)))


@given(sent=FRAMES, cuts=st.lists(st.integers(1, 50)))
def test_any_cutting_of_a_stream_gives_the_same_frames(sent: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    stream = b"".join(frames.encode(kind, payload) for kind, payload in sent)
    reader, read = Reader(*KINDS), []
    while stream:
        size = cuts.pop() if cuts else len(stream)
        read += reader.feed(stream[:size])
        stream = stream[size:]
    assert read == sent
    assert reader.is_empty


@given(junk=st.binary())
def test_junk_is_refused_or_waited_for_within_limits(junk: bytes) -> None:
    reader = Reader(frames.RUN)
    try:
        reader.feed(junk)
    except BadFrame:
        return
    assert len(reader._data) < frames.HEADER_BYTES + frames.MAX_COMMAND_BYTES


@pytest.mark.parametrize("kind", frames.LIMITS)
def test_a_frame_beyond_its_limit_is_refused_at_both_ends(kind: bytes) -> None:
    size = frames.LIMITS[kind] + 1
    with pytest.raises(BadFrame):
        frames.encode(kind, bytes(size))
    with pytest.raises(BadFrame):
        Reader(kind).feed(kind + size.to_bytes(frames.LENGTH_BYTES, "big"))


def test_a_kind_that_this_end_may_not_be_sent() -> None:
    with pytest.raises(BadFrame):
        Reader(frames.RUN).feed(frames.encode(frames.OUT, b"x"))


@pytest.mark.parametrize("payload", [b"", b"-1", b"256", b"0x1", b" 1", b"999"])
def test_a_number_that_is_none(payload: bytes) -> None:
    with pytest.raises(BadFrame):
        frames.decode_number(payload, 255)


@pytest.mark.parametrize(
    ("arguments", "host", "command"),
    [
        (["algo-2", " orted", "-mca", "ess"], "algo-2", " orted -mca ess"),  # Open MPI 4
        (["algo-2", "PRTE_PREFIX=/x;/x/bin/prted", "--tree"], "algo-2", "PRTE_PREFIX=/x;/x/bin/prted --tree"),
        (["-x", "algo-2", '"/x/hydra_pmi_proxy"', "--pgid", "0"], "algo-2", '"/x/hydra_pmi_proxy" --pgid 0'),  # MPICH
        (["-q", "-x", "algo-2", "/x/hydra_bstrap_proxy"], "algo-2", "/x/hydra_bstrap_proxy"),  # Intel MPI
        (["-o", "StrictHostKeyChecking=no", "-p22", "-l", "me", "algo-2", "true"], "algo-2", "true"),
        (["-oBatchMode=yes", "-xp", "22", "--", "me@algo-2", "true"], "algo-2", "true"),
    ],
)
def test_what_each_mpirun_calls_ssh_with(arguments: list[str], host: str, command: str) -> None:
    assert split_arguments(arguments) == (host, command)


@pytest.mark.parametrize("arguments", [[], ["algo-2"], ["-x"], ["-p", "22", "algo-2"]])
def test_no_host_or_no_command(arguments: list[str]) -> None:
    with pytest.raises(ValueError, match="usage"):
        split_arguments(arguments)
