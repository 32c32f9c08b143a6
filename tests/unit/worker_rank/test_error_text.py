"""Find the error in a program's output, also if other lines follow it."""

import pytest

from muster_worker.contract.error_text import MARKS, MAX_ERROR_CHARS, ErrorReader, find_error

PYTHON = 'Traceback (most recent call last):\n  File "t.py", line 9, in <module>\n    train()\n    ^^^^^^^\n'
FAREWELL = "tracker: Run summary:\n\ntracker:   loss 0.25\nView run at: https://metrics.example/r/1\n" * 5
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "t.py", line 1, in <module>
  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "t.py", line 5, in f
    | KeyError: 'x'
    |
    | During handling of the above exception, another exception occurred:
    |
    | Traceback (most recent call last):
    |   File "t.py", line 7, in f
    | ValueError: bad batch
    +---------------- 2 ----------------
    | Exception Group Traceback (most recent call last):
    |   File "t.py", line 8, in g
    | ExceptionGroup: inner (1 sub-exception)
    +-+---------------- 1 ----------------
      | TypeError: no
      +------------------------------------
"""
ABORT = """terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG 0 Rank 1] watchdog: CUDA error: an illegal memory access
Exception raised from check at /src/c10/cuda/Check.cpp:43 (most recent call first):
frame #0: some::function0(int, char const*) + 0x7 (0x7f0 in /lib/libsome.so)
frame #10: some::function10(int, char const*) + 0x7 (0x7f0 in /lib/libsome.so)

"""
LOST_PEER = """torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, NCCL version 2.21.5
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
Last error:
socketProgress: Connection closed by remote peer
"""


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("", ""),
        ("loss 0.3\nValueError is not raised here\nstep 7: 3\n", ""),
        (PYTHON + "ValueError: bad batch 17\n" + FAREWELL, "ValueError: bad batch 17"),
        (PYTHON + "_queue.Empty\n", "_queue.Empty"),
        (
            PYTHON + "subprocess.TimeoutExpired: Command 'a' timed out\n",
            "subprocess.TimeoutExpired: Command 'a' timed out",
        ),
        (
            PYTHON + "ray.exceptions.RayTaskError(ValueError): ray::f()\n",
            "ray.exceptions.RayTaskError(ValueError): ray::f()",
        ),
        (PYTHON + "f.<locals>.Stop: now\n", "f.<locals>.Stop: now"),
        (
            PYTHON + "RuntimeError: Error(s) in loading:\n\tsize mismatch\n\tsize mismatch\n",
            "RuntimeError: Error(s) in loading:",
        ),
        (
            PYTHON + "KeyError: 'a'\n\nDuring handling of the above exception:\n\n" + PYTHON + "OSError: b\n",
            "OSError: b",
        ),
        (
            PYTHON.replace("    ^^^^^^^\n", "wandb: a line of another process\n") + "struct.error: x\n",
            "struct.error: x",
        ),
        ('  File "t.py", line 1\n    x = = 3\n        ^\nSyntaxError: invalid syntax\n', "SyntaxError: invalid syntax"),
        ("".join(f"[rank3]: {line}\n" for line in (PYTHON + "KeyError: 1").split("\n")) + "bye\n", "KeyError: 1"),
        ("".join(f"[1,0]<stderr>:{line}\n" for line in (PYTHON + "KeyError: 1").split("\n")), "KeyError: 1"),
        ("ERROR:root:failed\n" + PYTHON + "ValueError: bad\nUploading the logs\nExiting\n", "ValueError: bad"),
        ("Caught it.\nOriginal " + PYTHON + "ValueError: sample 5\n", "ValueError: sample 5"),
        (GROUP + FAREWELL, "ValueError: bad batch; TypeError: no"),
        (
            ABORT,
            "c10::DistBackendError: [PG 0 Rank 1] watchdog: CUDA error: an illegal memory access",
        ),
        ("terminate called after throwing an instance of 'int'\nAborted\n", "int"),
        ("terminate called without an active exception\n", ""),
        ("libc++abi: terminating due to uncaught exception of type E: oops\n", "E: oops"),
        (PYTHON + LOST_PEER + "\n" + FAREWELL, LOST_PEER.strip()),
    ],
)
def test_the_error_is_found(output: str, error: str) -> None:
    assert find_error(output) == error


def test_an_error_has_a_limit() -> None:
    assert len(find_error(f"{PYTHON}ValueError: {'x' * 100_000}")) == MAX_ERROR_CHARS
    assert len(find_error(f"{PYTHON}{LOST_PEER}" + "more\n" * 10_000)) == MAX_ERROR_CHARS


@pytest.mark.parametrize("output", [PYTHON + "E", GROUP, ABORT, '  File "t.py", line 1\nSyntaxError: x'])
def test_output_without_a_mark_needs_no_reading(output: str) -> None:
    """An agent reads a line only if it has a mark, or if the reader waits for the rest of an error."""
    reader, marked = ErrorReader(), ErrorReader()
    for line in (FAREWELL + output + FAREWELL).split("\n"):
        reader.feed(line)
        if marked.is_waiting or any(mark in line.encode() for mark in MARKS):
            marked.feed(line)
    assert marked.error == reader.error != ""
