"""Describes the activity of a rank's main thread from its stack. Pure.

It parses faulthandler's output after a signal (most recent call first, all threads) and the traceback of an uncaught
exception on standard error (most recent call last).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, List, Optional, Tuple

from muster_worker.contract.schema import MAX_ACTIVITY_CHARS

_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s*File "(?P<file>.*)", line (?P<line>\d+|\?\?\?),? in (?P<function>\S.*)')
_THREAD = re.compile(r"(Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):")
_LIBRARY = re.compile(
    r"/(site-packages|dist-packages|muster_worker)/|/lib(64)?/python\d+(\.\d+)?[^/]*/|^<frozen "
    r"|/torch/(distributed|nn|autograd|optim|utils|cuda)/"  # torch may be in any folder of PYTHONPATH
)

_COLLECTIVES = "torch/distributed/distributed_c10d.py"
_COLLECTIVE = re.compile(
    r"(all_reduce|all_gather|all_to_all|reduce_scatter|broadcast|reduce|gather|scatter|send|recv|isend|irecv|barrier)"
    r"(_coalesced|_into_tensor|_object|_object_list|_single|_tensor)?|batch_isend_irecv|monitored_barrier"
    r"|new_group|new_subgroups|destroy_process_group|init_process_group"
)

# (end of the file's path, function, activity). The first entry that matches the innermost known frame applies.
_ACTIVITIES: Tuple[Tuple[str, str, str], ...] = (
    ("torch/distributed/_functional_collectives.py", "wait_tensor", "a collective"),
    ("torch/distributed/rendezvous.py", "", "init_process_group"),
    ("torch/nn/parallel/distributed.py", "__init__", "setting up DistributedDataParallel"),
    ("torch/autograd/graph.py", "_engine_run_backward", "backward"),
    ("torch/autograd/__init__.py", "backward", "backward"),
    ("torch/utils/data/dataloader.py", "", "loading data"),
    ("torch/serialization.py", "save", "saving a checkpoint"),
    ("torch/serialization.py", "load", "loading a checkpoint"),
    ("torch/distributed/checkpoint/state_dict_saver.py", "", "saving a checkpoint"),
    ("torch/distributed/checkpoint/state_dict_loader.py", "", "loading a checkpoint"),
    ("torch/cuda/__init__.py", "synchronize", "waiting for the GPU"),
    ("<frozen importlib._bootstrap>", "", "importing modules"),
)
_OPTIMIZER = re.compile(r"torch/optim/[a-z_0-9]+\.py$")


@dataclass(frozen=True)
class Frame:
    """One line of a stack."""

    file: str
    line: str
    function: str

    @property
    def is_library(self) -> bool:
        return bool(_LIBRARY.search(self.file))


def describe_dump(text: str) -> Optional[str]:
    """Return the activity in a faulthandler dump of all threads; None without a stack of the main thread."""
    return _describe_frames(_parse_main_thread(text.splitlines()))


def describe_traceback(lines: Iterable[str]) -> Optional[str]:
    """Return the activity in these lines of standard error; None if they have no traceback."""
    return _describe_frames(_parse_frames(lines)[::-1])


def describe_error_text(error_text: str) -> Optional[str]:
    """Return the activity in the last traceback on a rank's standard error; None without a traceback."""
    start = error_text.rfind(_TRACEBACK)
    return None if start < 0 else describe_traceback(error_text[start:].split("\n"))


def _parse_main_thread(lines: Iterable[str]) -> List[Frame]:
    # faulthandler lists the newest thread first, so the last one is the main thread. After 100 threads it writes "..."
    # and omits the rest, the main thread too.
    block: List[str] = []
    for line in lines:
        if _THREAD.match(line):
            block = []
        elif line == "...":
            return []
        block.append(line)
    return _parse_frames(block)


def _parse_frames(lines: Iterable[str]) -> List[Frame]:
    matches = (_FRAME.match(line) for line in lines)
    return [Frame(match["file"], match["line"], match["function"].strip()) for match in matches if match]


def _describe_frames(frames: List[Frame]) -> Optional[str]:
    """Return the activity in `frames`, from the innermost to the outermost."""
    for index, frame in enumerate(frames):
        current = _find_collective(frames[index:]) or _find_activity(frame)
        if current is not None:
            return current
    for frame in frames:
        if not frame.is_library:
            return f"{frame.file.rsplit('/', 1)[-1]}:{frame.line} in {frame.function}"[:MAX_ACTIVITY_CHARS]
    return None


def _find_collective(frames: List[Frame]) -> Optional[str]:
    # all_gather_object calls all_gather, and init_process_group calls barrier: return the outermost call, which the
    # script itself makes.
    name = None
    if frames[0].file.endswith(_COLLECTIVES):
        for frame in frames:
            if not frame.is_library:
                break
            if frame.file.endswith(_COLLECTIVES) and _COLLECTIVE.fullmatch(frame.function):
                name = frame.function
    return name


def _find_activity(frame: Frame) -> Optional[str]:
    for file, function, activity in _ACTIVITIES:
        if frame.file.endswith(file) and function in ("", frame.function):
            return activity
    if _OPTIMIZER.search(frame.file) and frame.function == "step":
        return "optimizer step"
    return None
