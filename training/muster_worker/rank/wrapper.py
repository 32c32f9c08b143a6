"""The wrapper around a rank.

It runs as `python -I -S agent.pyz rank -- COMMAND ARGS...`. It tells the agent what it does (`link.py`), hands it the
rank's output, starts the command as its child and ends as the child ended, so that launchers see what they would have
seen without it. Whatever goes wrong between it and the agent, the command runs.
"""

from __future__ import annotations

import os
import sys
import time

from muster_worker.rank import child, hook_environment, progress_file
from muster_worker.rank.announce import Announcer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping, NoReturn, Optional, Sequence, Tuple, Union

PYTHON_OF_PARENT = "--python-of-parent"  # COMMAND is what follows an interpreter: use the one that runs our parent
ATTACHED = "--attached"  # the rank was started by a launcher of the user's own: its streams stay with that launcher

# contract.EndReason's; its module imports dataclasses, which cost every rank's start more than the rest of the wrapper
COMMAND_NOT_FOUND = "CommandNotFound"
COMMAND_NOT_EXECUTABLE = "CommandNotExecutable"
WORLD_SIZE_MISMATCH = "WorldSizeMismatch"

MISMATCH_EXIT_CODE = 65
"""sysexits.h, EX_DATAERR: the world isn't the job's, and the command was not run."""

_REASONS = {child.NOT_FOUND: COMMAND_NOT_FOUND, MISMATCH_EXIT_CODE: WORLD_SIZE_MISMATCH}


class _Place:
    """What the environment says about this rank. `scope` is the hook's; sizes are 0 where nothing is said of them."""

    def __init__(self, rank: int, local_rank: int, scope: str, run_dir: str, worlds: Tuple[int, int]) -> None:
        self.rank = rank
        self.local_rank = local_rank
        self.scope = scope
        self.world, self.local_world = worlds
        self.progress = os.path.join(run_dir, f"rank-{rank}-{os.getpid()}.progress")


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the command of `arguments` (what follows `rank`) and end as it ends."""
    mode, command = list(arguments[: arguments.index("--")]), list(arguments[arguments.index("--") + 1 :])
    child.keep_standard_streams()
    signal_mask = child.hold_signals()
    if ATTACHED not in mode:  # that launcher may have started us from a thread that ends before us
        child.die_with_parent()
    environment = child.own_environment()
    if PYTHON_OF_PARENT in mode:
        from muster_worker.rank import interpreter  # other launchers' ranks start sooner without it

        command.insert(0, interpreter.python_of_parent(environment))
    mismatch, is_rank = None, True
    if any(name in environment for name in hook_environment.MPI_NODE_FILES):
        is_rank = not (ATTACHED in mode and _is_spawned(environment))
        environment, mismatch = _enter_world(environment, mode) if is_rank else (environment, None)
    joined = _join(environment, mode) if is_rank else _Joined(None, None, environment)
    if mismatch is not None:
        _refuse(joined.announcer, child.CommandRefused(MISMATCH_EXIT_CODE, mismatch))
    try:
        started = child.start(command, joined.environment, joined.streams, signal_mask)
    except child.CommandRefused as refusal:
        _refuse(joined.announcer, refusal)
    _tell(joined.announcer, "started", {"pid": started.pid, "at": time.monotonic()})
    for stream in joined.streams or ():  # only the child's copies keep the pipes open
        os.close(stream)
    status = started.wait()
    if os.WIFSIGNALED(status):
        # how large it was is what people ask when the kernel killed it
        end = {"signal": os.WTERMSIG(status), "peak_bytes": started.peak_bytes}
    else:
        end = {"exit_code": os.WEXITSTATUS(status)}
    _tell(joined.announcer, "ended", {"at": time.monotonic(), **end})
    child.end_like(status)


def _is_spawned(environment: Mapping[str, str]) -> bool:
    """Whether a rank of an mpirun of the user's own has started this process: a world beside the job's."""
    from muster_worker.mpi import world_variables

    return world_variables.is_spawned(environment)


def _enter_world(environment: Dict[str, str], mode: Sequence[str]) -> Tuple[Dict[str, str], Optional[str]]:
    """The rank's environment in its MPI world, and why it must not run there."""
    from muster_worker.mpi import rank_start

    try:
        entered = rank_start.with_world(environment, mode)
        return entered, rank_start.mismatch(entered)
    except (OSError, KeyError, ValueError) as error:
        _complain(f"can't tell this rank's place in its world, running the command without it: {error!r}")
        return environment, None


class _Joined:
    """What the child gets: the connection to the agent, its output streams and its environment."""

    def __init__(
        self, announcer: Optional[Announcer], streams: Optional[Tuple[int, int]], environment: Mapping[str, str]
    ) -> None:
        self.announcer = announcer
        self.streams = streams
        self.environment = environment


def _join(environment: Mapping[str, str], mode: Sequence[str]) -> _Joined:
    try:
        place = _place(environment)
        hooked = hook_environment.with_hook(environment, environment["MUSTER_ARCHIVE"], place.scope)
        progress_file.create(place.progress)
        announcer = Announcer(environment["MUSTER_AGENT_SOCKET"])
        streams = _greet(announcer, place, mode)
    except (OSError, KeyError, ValueError) as error:
        _complain(f"can't tell the agent about this rank, running the command without it: {error!r}")
        return _Joined(None, None, environment)
    hooked[hook_environment.PROGRESS] = place.progress
    return _Joined(announcer, streams, hooked)


def _greet(announcer: Announcer, place: _Place, mode: Sequence[str]) -> Optional[Tuple[int, int]]:
    """Say hello and hand over the read ends of the child's output; its write ends. Raises `OSError`."""
    hello: Dict[str, Union[str, float]] = {
        "rank": place.rank,
        "local_rank": place.local_rank,
        "pid": os.getpid(),
        "progress": place.progress,
        "world": place.world,
        "local_world": place.local_world,
    }
    if ATTACHED in mode:
        announcer.say("hello", {**hello, "role": "hook"})
        return None
    (out_reader, out), (err_reader, err) = os.pipe(), os.pipe()
    try:
        announcer.say("hello", {**hello, "role": "wrapper"}, (out_reader, err_reader))
    finally:
        os.close(out_reader)
        os.close(err_reader)
    return out, err


def _place(environment: Mapping[str, str]) -> _Place:
    # RANK belongs to the process itself; MUSTER_RANK to a node's command, which may start processes with a RANK
    if "RANK" in environment:
        prefix, scope = "", hook_environment.SCOPE_RANK
    else:
        prefix, scope = "MUSTER_", hook_environment.SCOPE_NODE
    rank, local_rank = int(environment[f"{prefix}RANK"]), int(environment[f"{prefix}LOCAL_RANK"])
    # a node's command says nothing of the world: it may start the ranks itself
    sizes = [int(environment.get(name, "0")) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE")]
    worlds = (sizes[0], sizes[1]) if scope == hook_environment.SCOPE_RANK else (0, 0)
    return _Place(rank, local_rank, scope, environment["MUSTER_RUN_DIR"], worlds)


def _refuse(announcer: Optional[Announcer], refusal: child.CommandRefused) -> NoReturn:
    if announcer is None:
        _complain(str(refusal))
    else:
        reason = _REASONS.get(refusal.exit_code, COMMAND_NOT_EXECUTABLE)
        _tell(announcer, "refused", {"reason": reason, "message": str(refusal), "at": time.monotonic()})
    os._exit(refusal.exit_code)


def _tell(announcer: Optional[Announcer], message: str, fields: Mapping[str, Union[str, float]]) -> None:
    try:
        if announcer is not None:
            announcer.say(message, fields)
    except OSError:  # the agent is gone; that is no reason to disturb the training
        pass


def _complain(text: str) -> None:
    sys.stderr.write(f"muster: {text}\n")
    sys.stderr.flush()
