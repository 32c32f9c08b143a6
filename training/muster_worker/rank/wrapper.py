"""The wrapper around a rank: `python -I -S agent.pyz rank -- COMMAND ARGS...`.

The wrapper starts the command as its child and reports to the agent (`link.py`). It sends the read ends of the rank's
output to the agent, and exits as the child did. Launchers see the same exit status as without the wrapper. If the
connection to the agent fails, the command runs anyway.
"""

from __future__ import annotations

import os
import sys
import time

from muster_worker.rank import child, hook_environment, progress_file
from muster_worker.rank.agent_connection import AgentConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, FrozenSet, Mapping, NoReturn, Optional, Sequence, Tuple, Union

    from muster_worker.fork_server.client import ForkedChild

PYTHON_OF_PARENT_OPTION = "--python-of-parent"  # COMMAND has no interpreter: use the parent process'
ATTACHED_OPTION = "--attached"  # a user's own launcher started the rank and reads its output

# Values of contract.EndReason. Importing that module would double the start time of every rank.
COMMAND_NOT_FOUND = "CommandNotFound"
COMMAND_NOT_EXECUTABLE = "CommandNotExecutable"
WORLD_SIZE_MISMATCH = "WorldSizeMismatch"

MISMATCH_EXIT_CODE = 65
"""sysexits.h: EX_DATAERR. The command was not run, because the rank's world is not the job's."""

TRAINER_TOKEN = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105 - the name of a variable

_REASONS = {child.NOT_FOUND: COMMAND_NOT_FOUND, MISMATCH_EXIT_CODE: WORLD_SIZE_MISMATCH}


class _RankPosition:
    """The rank's position in its world. `scope` is the hook's scope. Unknown sizes are 0."""

    def __init__(self, rank: int, local_rank: int, scope: str, run_dir: str, world_sizes: Tuple[int, int]) -> None:
        self.rank = rank
        self.local_rank = local_rank
        self.scope = scope
        self.world, self.local_world = world_sizes
        self.progress = os.path.join(run_dir, f"rank-{rank}-{os.getpid()}.progress")


def main(arguments: Sequence[str], environment: Optional[Mapping[str, str]] = None) -> NoReturn:
    """Run the command after `--` in `arguments` and exit as it does. `environment` defaults to this process' own."""
    options, command = list(arguments[: arguments.index("--")]), list(arguments[arguments.index("--") + 1 :])
    child.open_standard_streams()
    signal_mask = child.block_signals()
    if ATTACHED_OPTION not in options:  # a user's launcher may start the rank in a thread that ends before the rank
        child.die_with_parent()
    environment = child.read_environment() if environment is None else dict(environment)
    fork_server = environment.pop(hook_environment.FORK_SERVER, None)
    if PYTHON_OF_PARENT_OPTION in options:
        from muster_worker.rank import interpreter  # imported on demand, so that ranks of other launchers start faster

        command.insert(0, interpreter.find_parent_python(environment))
    mismatch, is_rank = None, True
    if any(name in environment for name in hook_environment.MPI_NODE_FILE_VARIABLES):
        is_rank = not (ATTACHED_OPTION in options and _is_spawned(environment))
        environment, mismatch = _add_world(environment, options) if is_rank else (environment, None)
    child_context = _connect(environment, options) if is_rank else _ChildContext(None, None, environment)
    if mismatch is not None:
        _exit_with_refusal(child_context.agent_connection, child.CommandRefused(MISMATCH_EXIT_CODE, mismatch))
    try:
        process, reason = _start(
            command, child_context, signal_mask, None if ATTACHED_OPTION in options else fork_server
        )
    except child.CommandRefused as error:
        _exit_with_refusal(child_context.agent_connection, error)
    started_fields: Dict[str, Union[str, float]] = {"pid": process.pid, "at": time.monotonic()}
    if reason is not None:
        started_fields["not_forked"] = reason
    _send(child_context.agent_connection, "started", started_fields)
    for stream in child_context.streams or ():  # only the child's copies may keep the pipes open
        os.close(stream)
    status = process.wait()
    if os.WIFSIGNALED(status):
        # For ranks that the kernel killed, users need the maximum memory.
        end_fields = {"signal": os.WTERMSIG(status), "peak_bytes": process.peak_bytes}
    else:
        end_fields = {"exit_code": os.WEXITSTATUS(status)}
    _send(child_context.agent_connection, "ended", {"at": process.ended_at, **end_fields})
    child.exit_with_status(status)


def run_launcher(arguments: Sequence[str], environment: Optional[Mapping[str, str]] = None) -> NoReturn:
    """Run the launcher after `SOCKET --` in `arguments` with the fork server, if possible, and exit as it does.

    `environment` defaults to this process' own.
    """
    command = list(arguments[arguments.index("--") + 1 :])
    child.open_standard_streams()
    signal_mask = child.block_signals()
    child.die_with_parent()
    environment = child.read_environment() if environment is None else dict(environment)
    process, reason = _start_forked(arguments[0], command, _ChildContext(None, None, environment), signal_mask)
    if process is not None:
        child.exit_with_status(process.wait(is_launcher=True))
    _warn(f"the launcher imports torch itself: {reason}")
    try:
        # The agent signals only this process, and a wrapper that leads its process group does not forward signals.
        child.replace_process(command, environment, signal_mask)
    except child.CommandRefused as error:
        _exit_with_refusal(None, error)


def _start(
    command: Sequence[str], child_context: _ChildContext, signal_mask: FrozenSet[int], fork_server: Optional[str]
) -> Tuple[Union[child.Child, ForkedChild], Optional[str]]:
    """Start the command, with the fork server if there is one. If the fork server refuses, also return its reason.

    Raises `child.CommandRefused`.
    """
    reason = None
    if fork_server is not None:
        process, reason = _start_forked(fork_server, command, child_context, signal_mask)
        if process is not None:
            return process, None
    started = child.start(command, child_context.environment, child_context.streams, signal_mask)
    started.progress_path = child_context.environment.get(hook_environment.PROGRESS)
    return started, reason


def _start_forked(
    fork_server: str, command: Sequence[str], child_context: _ChildContext, signal_mask: FrozenSet[int]
) -> Tuple[Optional[ForkedChild], Optional[str]]:
    """Let the fork server start the command. Returns its process, or the reason why it refuses."""
    from muster_worker.fork_server import client

    try:
        return client.start(fork_server, command, child_context.environment, child_context.streams, signal_mask), None
    except client.ForkRefused as refusal:
        return None, str(refusal)
    except client.StartInterrupted as interruption:
        _send(child_context.agent_connection, "started", {"pid": os.getpid(), "at": time.monotonic()})
        _send(child_context.agent_connection, "ended", {"at": time.monotonic(), "signal": interruption.number})
        child.exit_with_status(interruption.number)


def _is_spawned(environment: Mapping[str, str]) -> bool:
    """Whether a rank of a user's own mpirun has spawned this process. It is then in a separate world."""
    from muster_worker.mpi import world_variables

    return world_variables.is_spawned(environment)


def _add_world(environment: Dict[str, str], options: Sequence[str]) -> Tuple[Dict[str, str], Optional[str]]:
    """Return the rank's environment in its MPI world, and the reason not to run its command, if there is one."""
    from muster_worker.mpi import rank_start

    try:
        rank_environment = rank_start.add_world_variables(environment, options)
        return rank_environment, rank_start.describe_mismatch(rank_environment)
    except (OSError, KeyError, ValueError) as error:
        _warn(f"this rank's position in its world is unknown, so the command runs without its variables: {error!r}")
        return environment, None


def _remove_trainer_variables(environment: Mapping[str, str]) -> Mapping[str, str]:
    from muster_worker.rank import trainer_variables

    return trainer_variables.remove_variables(environment)


class _ChildContext:
    """The output streams and the environment of the child, and the connection to the agent."""

    def __init__(
        self,
        agent_connection: Optional[AgentConnection],
        streams: Optional[Tuple[int, int]],
        environment: Mapping[str, str],
    ) -> None:
        self.agent_connection = agent_connection
        self.streams = streams
        self.environment = environment


def _connect(environment: Mapping[str, str], options: Sequence[str]) -> _ChildContext:
    try:
        position = _read_position(environment)
        if position.rank != 0 and TRAINER_TOKEN in environment:
            environment = _remove_trainer_variables(environment)
        hooked_environment = hook_environment.add_hook(environment, environment["MUSTER_ARCHIVE"], position.scope)
        progress_file.create(position.progress)
        agent_connection = AgentConnection(environment["MUSTER_AGENT_SOCKET"])
        streams = _send_hello(agent_connection, position, options)
    except (OSError, KeyError, ValueError) as error:
        _warn(f"no connection to the agent, so the command runs without reports: {error!r}")
        return _ChildContext(None, None, environment)
    hooked_environment[hook_environment.PROGRESS] = position.progress
    return _ChildContext(agent_connection, streams, hooked_environment)


def _send_hello(
    agent_connection: AgentConnection, position: _RankPosition, options: Sequence[str]
) -> Optional[Tuple[int, int]]:
    """Send the hello with the read ends of the child's output. Returns the write ends. Raises `OSError`."""
    hello: Dict[str, Union[str, float]] = {
        "rank": position.rank,
        "local_rank": position.local_rank,
        "pid": os.getpid(),
        "progress": position.progress,
        "world": position.world,
        "local_world": position.local_world,
    }
    if ATTACHED_OPTION in options:
        agent_connection.send("hello", {**hello, "role": "hook"})
        return None
    (out_reader, out_writer), (err_reader, err_writer) = os.pipe(), os.pipe()
    try:
        agent_connection.send("hello", {**hello, "role": "wrapper"}, (out_reader, err_reader))
    finally:
        os.close(out_reader)
        os.close(err_reader)
    return out_writer, err_writer


def _read_position(environment: Mapping[str, str]) -> _RankPosition:
    # A rank has RANK. A node's command has MUSTER_RANK, because its children may have RANK.
    if "RANK" in environment:
        prefix, scope = "", hook_environment.SCOPE_RANK
    else:
        prefix, scope = "MUSTER_", hook_environment.SCOPE_NODE
    rank, local_rank = int(environment[f"{prefix}RANK"]), int(environment[f"{prefix}LOCAL_RANK"])
    # A node's command may start the ranks itself, so its environment has no world sizes.
    sizes = [int(environment.get(name, "0")) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE")]
    world_sizes = (sizes[0], sizes[1]) if scope == hook_environment.SCOPE_RANK else (0, 0)
    return _RankPosition(rank, local_rank, scope, environment["MUSTER_RUN_DIR"], world_sizes)


def _exit_with_refusal(agent_connection: Optional[AgentConnection], error: child.CommandRefused) -> NoReturn:
    if agent_connection is None:
        _warn(str(error))
    else:
        reason = _REASONS.get(error.exit_code, COMMAND_NOT_EXECUTABLE)
        _send(agent_connection, "refused", {"reason": reason, "message": str(error), "at": time.monotonic()})
    os._exit(error.exit_code)


def _send(agent_connection: Optional[AgentConnection], message: str, fields: Mapping[str, Union[str, float]]) -> None:
    try:
        if agent_connection is not None:
            agent_connection.send(message, fields)
    except OSError:  # the agent has ended; the training continues
        pass


def _warn(text: str) -> None:
    sys.stderr.write(f"muster: {text}\n")
    sys.stderr.flush()
