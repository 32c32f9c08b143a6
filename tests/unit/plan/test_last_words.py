"""Which of a process's last lines tells why, and whether it blames a peer."""

import pytest

from muster.plan.last_words import blames_a_peer, clean, collective, likeness, telling_line

GLOO = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.1]:43121"


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ((), ""),
        (("", "  "), ""),
        (("one", "two"), "two"),
        (("KeyError: 'x'",), "KeyError: 'x'"),
        (("[rank3]: ValueError: bad", "[rank3]:[W] destroy_process_group() was not called"), "ValueError: bad"),
        (
            ("torch.OutOfMemoryError: CUDA out of memory.", "See documentation"),
            "torch.OutOfMemoryError: CUDA out of memory.",
        ),
        (("first.Error: a", "During handling ...", "SecondError: b"), "SecondError: b"),
        (("real trouble", "UserWarning: lr_scheduler"), "UserWarning: lr_scheduler"),
        (("ValueError: a", "UserWarning: b"), "ValueError: a"),
        (("AssertionError",), "AssertionError"),
        (("torchrun: error: unrecognized arguments: --foo",), "torchrun: error: unrecognized arguments: --foo"),
    ],
)
def test_the_line_that_tells_why(lines: tuple[str, ...], line: str) -> None:
    assert telling_line(lines) == line


@pytest.mark.parametrize(
    "line",
    [
        GLOO,
        "RuntimeError: [../pair.cc:534] Read error [127.0.0.1]:5: Connection reset by peer",
        "ConnectionError: Connection closed by peer",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "BrokenPipeError: [Errno 32] Broken pipe",
        "torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or a network error",
        "ncclRemoteError: A call failed possibly due to a network error",
        "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4 got signal: 15",
        "KeyboardInterrupt",
    ],
)
def test_a_lost_peer_is_blamed(line: str) -> None:
    assert blames_a_peer(("Traceback (most recent call last):", line))


@pytest.mark.parametrize(
    "lines",
    [
        ("ValueError: bad label",),
        ("retrying: Connection reset by peer", "ValueError: bad label"),
        ("torch.OutOfMemoryError: CUDA out of memory",),
        ("ModuleNotFoundError: No module named 'nope'",),
        ("FileNotFoundError: [Errno 2] No such file",),
        (),
    ],
)
def test_an_error_of_its_own_is_not_a_lost_peer(lines: tuple[str, ...]) -> None:
    assert not blames_a_peer(lines)


def test_the_same_way_forgets_numbers_and_prefixes() -> None:
    one = likeness((f"[rank0]: {GLOO}",))

    assert one == likeness((f"[rank7]: {GLOO.replace('43121', '5').replace('10.0.0.1', '10.0.0.22')}",))
    assert one != likeness(("ValueError: bad",))


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (('  File "c10d.py", line 2810, in all_reduce', "    work.wait()", GLOO), "all_reduce"),
        (("    dist.barrier()", GLOO), "barrier"),
        (("    loss.backward()", GLOO), "backward"),
        (("in all_reduced", GLOO), None),
        ((), None),
    ],
)
def test_the_collective_in_a_traceback(lines: tuple[str, ...], name: str | None) -> None:
    assert collective(lines) == name


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07done", "red done"),
        ("a\r\nb\u2028c", "a b c"),
        ("\ufffd caf\ufffd", "\ufffd caf\ufffd"),
        ("é" * 301, "é" * 299 + "…"),
    ],
)
def test_lines_are_made_fit_to_be_shown(text: str, line: str) -> None:
    assert clean(text) == line
