"""What a rank's main thread was in, in a few words, from its stack. Pure.

It reads what faulthandler writes on a signal (most recent call first, all threads) and the traceback that an exception
leaves on standard error (most recent call last).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, List, Optional, Tuple

from muster_worker.contract.schema import MAX_ACTIVITY_CHARS

_FRAME = re.compile(r'\s*File "(?P<file>.*)", line (?P<line>\d+|\?\?\?),? in (?P<function>\S.*)')
_THREAD = re.compile(r"(Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):")
_LIBRARY = re.compile(r"/(site-packages|dist-packages|muster_worker)/|/lib(64)?/python\d+(\.\d+)?[^/]*/|^<frozen ")

_COLLECTIVES = "torch/distributed/distributed_c10d.py"
_COLLECTIVE = re.compile(
    r"(all_reduce|all_gather|all_to_all|reduce_scatter|broadcast|reduce|gather|scatter|send|recv|isend|irecv|barrier)"
    r"(_coalesced|_into_tensor|_object|_object_list|_single|_tensor)?|batch_isend_irecv|monitored_barrier"
    r"|new_group|new_subgroups|destroy_process_group|init_process_group"
)

# (end of the file's path, function, what it is); the first line that fits the innermost known frame is taken
_KNOWN: Tuple[Tuple[str, str, str], ...] = (
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


def of_dump(text: str) -> Optional[str]:
    """The activity in a faulthandler dump of all threads; None when it says nothing about the main thread."""
    return _of_frames(_main_thread(text.splitlines()))


def of_traceback(lines: Iterable[str]) -> Optional[str]:
    """The activity when an exception left these lines; None when they hold no traceback."""
    return _of_frames(_frames(lines)[::-1])


def _main_thread(lines: Iterable[str]) -> List[Frame]:
    # Threads are listed from the newest to the oldest, and the oldest is the main thread. After a hundred faulthandler
    # gives up with "...": then the last one listed is some other.
    block: List[str] = []
    for line in lines:
        if _THREAD.match(line):
            block = []
        elif line == "...":
            return []
        block.append(line)
    return _frames(block)


def _frames(lines: Iterable[str]) -> List[Frame]:
    found = (_FRAME.match(line) for line in lines)
    return [Frame(match["file"], match["line"], match["function"].strip()) for match in found if match]


def _of_frames(frames: List[Frame]) -> Optional[str]:
    """`frames` from the innermost to the outermost."""
    for index, frame in enumerate(frames):
        current = _collective(frames[index:]) or _activity_of(frame)
        if current is not None:
            return current
    for frame in frames:
        if not frame.is_library:
            return f"{frame.file.rsplit('/', 1)[-1]}:{frame.line} in {frame.function}"[:MAX_ACTIVITY_CHARS]
    return None


def _collective(frames: List[Frame]) -> Optional[str]:
    # all_gather_object calls all_gather, init_process_group calls barrier: the outermost is what the script asked for
    name = None
    if frames[0].file.endswith(_COLLECTIVES):
        for frame in frames:
            if not frame.is_library:
                break
            if frame.file.endswith(_COLLECTIVES) and _COLLECTIVE.fullmatch(frame.function):
                name = frame.function
    return name


def _activity_of(frame: Frame) -> Optional[str]:
    for file, function, activity in _KNOWN:
        if frame.file.endswith(file) and function in ("", frame.function):
            return activity
    if _OPTIMIZER.search(frame.file) and frame.function == "step":
        return "optimizer step"
    return None
