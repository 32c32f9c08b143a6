"""The error in the last lines of a process, and whether it is the loss of a peer."""

import pytest

from muster.core.failure.rank_output import (
    contains_abort,
    find_collective,
    find_error_line,
    find_error_text,
    mentions_failed_rank,
    mentions_lost_peer,
    normalize_error_line,
    sanitize_line,
)

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
        (("real problem", "UserWarning: lr_scheduler"), "UserWarning: lr_scheduler"),
        (("ValueError: a", "UserWarning: b"), "ValueError: a"),
        (("AssertionError",), "AssertionError"),
        (("Traceback (most recent call last):", "_queue.Empty", "tracker: bye"), "_queue.Empty"),
        (("illegal access", "Exception raised from a", "frame #9: f", "frame #10: g", "+----+"), "illegal access"),
        (("frame #10: g",), "frame #10: g"),
        (("torchrun: error: unrecognized arguments: --foo",), "torchrun: error: unrecognized arguments: --foo"),
    ],
)
def test_find_error_line(lines: tuple[str, ...], line: str) -> None:
    assert find_error_line(lines) == line


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
def test_errors_that_mention_a_lost_peer(line: str) -> None:
    assert mentions_lost_peer(("Traceback (most recent call last):", line))


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
def test_errors_that_do_not_mention_a_lost_peer(lines: tuple[str, ...]) -> None:
    assert not mentions_lost_peer(lines)


def test_normalized_error_lines_have_no_numbers_and_prefixes() -> None:
    normalized = normalize_error_line((f"[rank0]: {GLOO}",))

    assert normalized == normalize_error_line(
        (f"[rank7]: {GLOO.replace('43121', '5').replace('10.0.0.1', '10.0.0.22')}",)
    )
    assert normalized != normalize_error_line(("ValueError: bad",))


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
def test_find_the_collective_in_a_traceback(lines: tuple[str, ...], name: str | None) -> None:
    assert find_collective(lines) == name


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07done", "red done"),
        ("a\r\nb\u2028c", "a b c"),
        ("\ufffd caf\ufffd", "\ufffd caf\ufffd"),
        ("é" * 301, "é" * 299 + "…"),
    ],
)
def test_clean_removes_control_characters_and_shortens_lines(text: str, line: str) -> None:
    assert sanitize_line(text) == line


@pytest.mark.parametrize(
    "line",
    [
        # Open MPI 4.1 and 5.0
        "mpirun noticed that process rank 1 with PID 23930 on node algo-2 exited on signal 9 (Killed).",
        "prterun noticed that process rank 1 with PID 0 on node algo-2 exited on",
        "prterun has exited due to process rank 1 with PID 0 on node algo-2 calling",
        "prterun detected that one or more processes exited with non-zero status,",
        "thus causing the job to be terminated. The first process to do so was:",
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "Primary job  terminated normally, but 1 process returned a non-zero exit code",
        "terminated by signals sent by mpirun (as reported here).",
        "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD",
        "[algo-1:00000] *** reported by process [1086717953,0]",
        "[algo-1:00000] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,",
        # MPICH 5.0, Intel MPI 2021
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
    ],
)
def test_mpirun_output_that_mentions_a_failed_rank(line: str) -> None:
    assert mentions_failed_rank(("-" * 74, line, "-" * 74))


@pytest.mark.parametrize(
    "line",
    [
        "A daemon failed to report back after being spawned. This could",
        "ORTE was unable to reliably start one or more daemons.",
        "ORTE has lost communication with a remote daemon.",
        "[mpiexec@algo-1] ui_cmd_cb (pmiserv_pmci.c:51): Launch proxy failed.",
        "while attempting to start process rank 0.",
        "",
    ],
)
def test_mpirun_output_that_mentions_no_failed_rank(line: str) -> None:
    assert not mentions_failed_rank((line,))


@pytest.mark.parametrize(
    ("line", "contains"),
    [
        ("Abort(3) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 3) - process 1", True),
        ("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD", True),
        ("NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.", False),
        ("Abort(15) on node 0: Fatal error in internal_Init", False),
    ],
)
def test_output_that_contains_an_mpi_abort(line: str, contains: bool) -> None:  # noqa: FBT001
    assert contains_abort((line,)) == contains


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ((), ""),
        (("-" * 60, "  Remote host:   algo-2", "", "try again.", "=" * 60), "Remote host: algo-2 try again."),
        (("muster: algo-2 is gone", "Launch proxy failed."), "algo-2 is gone"),
        (("muster: one", "muster: two"), "two"),
        (('  File "train.py", line 3', "ValueError: bad label", "Abort(1) on node 2"), "ValueError: bad label"),
        (("x" * 200, "y" * 200), f"{'x' * 200} {'y' * 98}…"),
    ],
)
def test_find_the_error_text_of_mpirun(lines: tuple[str, ...], sentence: str) -> None:
    assert find_error_text(lines) == sentence
