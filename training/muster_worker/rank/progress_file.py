"""A rank's progress file: its layout, and the writer in the rank's process. `progress.py` reads it.

The file has a fixed size, and the rank's process maps it into memory. So counting a step needs no system call, and the
last count outlives the process. Every field is an aligned 8-byte word in the machine's byte order, which is written
atomically. The user's report is JSON with a checksum.

    word 0  magic      1  pid of the process that claimed it     2  start time of that process, clock ticks
    word 3  flags      4  optimizer steps                        5  monotonic time of the last one, seconds
    word 6  descriptor of the file for stack dumps               7  monotonic time of the last report, seconds
    word 8  length << 32 | CRC-32 of the report              9  calls of `muster_worker.stopping`
    word 10 monotonic time until which the current phase may last, seconds; 0: none
    word 11 monotonic time of the end of the last phase       12-15  name of the phase, ASCII
    word 16 monotonic time of the first optimizer step, seconds
    word 17 number of measurements of the busy time     18-49  the last 32 of them, seconds
    word 50 length << 32 | CRC-32 of the error           51  monotonic time of the error, seconds
    then the report, and the error: its text, a null byte and its innermost frames, UTF-8
"""

from __future__ import annotations

import fcntl
import mmap
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional, Tuple

SIZE = 6496
MAGIC = int.from_bytes(b"MUSTERP2", "little")

WORD_MAGIC, WORD_PID, WORD_PID_START, WORD_FLAGS, WORD_STEPS = 0, 1, 2, 3, 4
WORD_STEPPED_AT, WORD_STACKS_FD, WORD_REPORTED_AT, WORD_REPORT_CHECK, WORD_STOPPING_CALLS = 5, 6, 7, 8, 9
WORD_PHASE_ENDS_AT, WORD_PHASE_ENDED_AT, WORD_PHASE_NAME, WORD_FIRST_STEPPED_AT = 10, 11, 12, 16
WORD_BUSY_COUNT, WORD_BUSY_TIMES, BUSY_TIMES = 17, 18, 32
WORD_ERROR_CHECK, WORD_ERROR_AT, REPORT_WORD = 50, 51, 52
PHASE_NAME_START = WORD_PHASE_NAME * 8
PHASE_NAME_BYTES = (WORD_FIRST_STEPPED_AT - WORD_PHASE_NAME) * 8
REPORT_START = REPORT_WORD * 8
MAX_REPORT_BYTES = 4048
ERROR_START = REPORT_START + MAX_REPORT_BYTES
MAX_ERROR_BYTES = SIZE - ERROR_START

FLAG_TORCH = 1  # torch's optimizers are imported
FLAG_COUNTING = 2  # torch calls the hook after every step
FLAG_STACKS = 4  # the process writes stack dumps on the signal
FLAG_REPORT_FULL = 8  # a report was too large and was dropped
FLAG_UNCAUGHT = 16  # no code has caught the error, so the main thread is over


def create(path: str) -> None:
    """Create an empty progress file that only its owner can read. Raises `OSError`."""
    try:
        os.unlink(path)  # left by a process that had the same pid
    except FileNotFoundError:
        pass
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, SIZE)
        os.pwrite(fd, MAGIC.to_bytes(8, "little"), 0)
    finally:
        os.close(fd)


def start_time(pid: int) -> Optional[int]:
    """Return the start time of a process in clock ticks since boot; None if it doesn't exist or is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def find_claimer(path: str) -> Optional[int]:
    """Return the pid of the running process that has claimed the file; None if there is none, or no file."""
    try:
        with open(path, "rb") as file:
            header = file.read((WORD_PID_START + 1) * 8)
    except OSError:
        return None
    if len(header) != (WORD_PID_START + 1) * 8:
        return None
    words = memoryview(header).cast("Q")
    pid = words[WORD_PID]
    return pid if pid and start_time(pid) == words[WORD_PID_START] else None


def claim(path: str) -> Optional[Writer]:
    """Claim the file for this process. Returns None if a running process has claimed it. Raises `OSError`.

    When that process has ended, the next process may claim the file and count from 0. An example is `sh -c "python
    prepare.py && python train.py"`.
    """
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        mapping = mmap.mmap(fd, SIZE)
        words = memoryview(mapping).cast("Q")
        claimer_pid = words[WORD_PID]
        if claimer_pid and start_time(claimer_pid) == words[WORD_PID_START]:
            return None
        for word in range(WORD_PID_START, REPORT_START // 8):
            words[word] = 0
        words[WORD_PID_START] = start_time(os.getpid()) or 0
        words[WORD_PID] = os.getpid()
        return Writer(mapping, words)
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)  # closing the descriptor isn't enough: the mapping keeps the file open
        os.close(fd)


_own_file: Optional[Tuple[Writer, str]] = None  # the file that the hook has claimed for this process, and its path


def set_own_file(writer: Writer, path: str) -> None:
    """Let `start_in_rank` use this file: this process is the rank. It does not apply to forked children."""
    global _own_file  # noqa: PLW0603 - the file belongs to the process
    _own_file = (writer, path)
    os.register_at_fork(after_in_child=_forget_own_file)


def _forget_own_file() -> None:
    global _own_file  # noqa: PLW0603 - as above
    _own_file = None


def start_in_rank(start: Callable[[Writer, str], None], stop: Callable[[], None]) -> None:
    """Call `start` with the rank's file and its path, if this process is the rank, and `stop` in forked children.

    Modules that few training scripts use call it when they are imported. So a rank's start does not wait for them.
    """
    if _own_file is not None:
        start(*_own_file)
        os.register_at_fork(after_in_child=stop)


class Writer:
    """Writes to a claimed file, from one thread of the process that claimed it."""

    def __init__(self, mapping: mmap.mmap, words: memoryview) -> None:
        self.mapping = mapping
        self.words = words  # as unsigned integers
        self.times = memoryview(mapping).cast("d")  # the same words as floats

    def set_flag(self, flag: int) -> None:
        """Set one of the FLAG_ constants."""
        self.words[WORD_FLAGS] |= flag

    def clear_flag(self, flag: int) -> None:
        """Clear one of the FLAG_ constants."""
        self.words[WORD_FLAGS] &= ~flag & (2**64 - 1)

    def write_report(self, report: bytes, at: float) -> None:
        """Replace the report. Its maximum length is `MAX_REPORT_BYTES`."""
        # A concurrent reader gets a wrong checksum and reads again.
        self.mapping[REPORT_START : REPORT_START + len(report)] = report
        self.words[WORD_REPORT_CHECK] = check_word(report)
        self.times[WORD_REPORTED_AT] = at

    def write_error(self, error: bytes, at: float, flag: int) -> None:
        """Replace the error. Its maximum length is `MAX_ERROR_BYTES`; `flag` is `FLAG_UNCAUGHT` or 0."""
        self.mapping[ERROR_START : ERROR_START + len(error)] = error
        self.times[WORD_ERROR_AT] = at
        self.words[WORD_ERROR_CHECK] = check_word(error)
        self.words[WORD_FLAGS] |= flag

    def write_phase(self, name: bytes, ends_at: float) -> None:
        """Begin a phase without steps, or replace the current one. The name has at most `PHASE_NAME_BYTES`."""
        end = PHASE_NAME_START + PHASE_NAME_BYTES
        self.mapping[PHASE_NAME_START:end] = name.ljust(PHASE_NAME_BYTES, b"\0")
        self.times[WORD_PHASE_ENDS_AT] = ends_at

    def end_phase(self, at: float) -> None:
        """End the phase. From now on the rank has the whole timeout for its next step."""
        self.times[WORD_PHASE_ENDED_AT] = at
        self.times[WORD_PHASE_ENDS_AT] = 0.0


def check_word(report: bytes) -> int:
    """Return the length and the checksum of a report in one word, which is written atomically."""
    from binascii import crc32  # on demand: most ranks report nothing

    return len(report) << 32 | crc32(report)


def split_check_word(word: int) -> Tuple[int, int]:
    """Return (length, checksum) of a report."""
    return word >> 32, word & 0xFFFFFFFF
