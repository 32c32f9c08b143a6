"""Commands on another node, through the program that replaces ssh for mpirun: outputs, ends, and lost connections."""

import os
import pwd
import signal
import socket
from pathlib import Path

import pytest

from muster.api.spec.failure_policy import DEFAULT_FENCE_SECONDS, MAX_FENCE_SECONDS, MIN_FENCE_SECONDS
from muster_worker.machine import processes
from muster_worker.remote.outgoing_command import OutgoingCommand
from support.agent_folder import share_agent_folder
from support.remote_rank_group import RemoteRankGroup


def test_outputs_and_exit_code(rank_group: RemoteRankGroup) -> None:
    called = rank_group.call("-x", "-o", "LogLevel=ERROR", "algo-2", "echo out; echo err >&2;", "echo $NODE; exit 3")
    assert rank_group.wait_for_exit(called) == 3
    assert (called.out.read_text(), called.err.read_text()) == ("out\n1\n", "err\n")


@pytest.mark.parametrize("name", ["algo-2", "digits-1", "algo-2.digits.default.svc", "root@algo-2"])
def test_names_of_a_node(rank_group: RemoteRankGroup, name: str) -> None:
    called = rank_group.call(name, "echo $NODE")
    assert (rank_group.wait_for_exit(called), called.out.read_text()) == (0, "1\n")


def test_a_name_that_is_none(rank_group: RemoteRankGroup) -> None:
    called = rank_group.call("algo-3", "true")
    assert rank_group.wait_for_exit(called) == 255
    value = "muster: the job has no node 'algo-3'; mpirun's host file has algo-1 to algo-2\n"
    assert called.err.read_text() == value


def test_a_command_for_a_csh_is_run_by_one(
    rank_group: RemoteRankGroup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open MPI writes for the user's own shell, as sshd would run it."""
    csh = tmp_path / "csh"
    csh.write_text('#!/bin/sh\necho "csh is given $1 $2"\n')
    csh.chmod(0o700)
    own = pwd.getpwuid(os.getuid())
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd((*own[:6], str(csh))))
    called = rank_group.call("algo-2", "setenv A 1")
    assert (rank_group.wait_for_exit(called), called.out.read_text()) == (0, "csh is given -c setenv A 1\n")


def test_a_signal(rank_group: RemoteRankGroup) -> None:
    assert rank_group.wait_for_exit(rank_group.call("algo-2", "kill -9 $$")) == 128 + 9


def test_standard_input_is_empty(rank_group: RemoteRankGroup) -> None:
    called = rank_group.call("algo-2", "cat; echo end")
    assert (rank_group.wait_for_exit(called), called.out.read_text()) == (0, "end\n")


def test_nothing_is_lost_or_reordered(rank_group: RemoteRankGroup) -> None:
    """Ten megabytes on both streams at once, and the last line just before the end."""
    lines = "i=0; while [ $i -lt 20000 ]; do echo $i-{} ; i=$((i+1)); done"
    text = "x" * 120
    called = rank_group.call("algo-2", f"({lines.format(text)}) & ({lines.format(text)}) >&2; wait; echo last")
    assert rank_group.wait_for_exit(called) == 0
    expected = [f"{number}-{text}" for number in range(20000)]
    assert called.out.read_text().splitlines() == [*expected, "last"]
    assert called.err.read_text().splitlines() == expected


def each_outgoing(rank_group: RemoteRankGroup) -> list[OutgoingCommand]:
    return [command for each in rank_group.remote_commands for command in each._outgoing]


def test_who_does_not_read_makes_the_writer_wait(rank_group: RemoteRankGroup) -> None:
    reader, writer = os.pipe()
    pid = os.posix_spawn(
        str(rank_group.folder / "0" / "remote"),
        ["remote", "algo-2", "head -c 50000000 /dev/zero"],
        dict(os.environ),
        file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
    )
    os.close(writer)
    rank_group.turn_until(
        lambda: any(command._channel and command._channel.is_paused for command in each_outgoing(rank_group))
    )
    for _ in range(20):
        rank_group.turn()
    # the buffered data is limited: the writer has not finished
    assert pid not in rank_group.ends
    assert all(len(command._unsent) < 1 << 20 for command in each_outgoing(rank_group))
    taken = 0

    def take() -> bool:
        nonlocal taken
        os.set_blocking(reader, False)
        try:
            while data := os.read(reader, 1 << 20):
                taken += len(data)
        except BlockingIOError:
            return False
        return True

    rank_group.turn_until(take)
    os.close(reader)
    assert taken == 50_000_000


@pytest.mark.parametrize("fence", [0, MIN_FENCE_SECONDS, DEFAULT_FENCE_SECONDS, MAX_FENCE_SECONDS])
def test_both_ends_bear_a_longer_silence_than_the_fence(fence: int) -> None:
    """A node that hears nothing for almost as long as its fence, beginning 15 s after the last packet, goes on."""
    with RemoteRankGroup(share_agent_folder(), fence_seconds=fence) as rank_group:
        rank_group.call("algo-2", "sleep 300")
        rank_group.turn_until(lambda: rank_group.remote_commands[1].is_running)
        (outgoing,), (incoming,) = each_outgoing(rank_group), rank_group.remote_commands[1]._incoming
        assert outgoing._channel is not None
        for channel in (outgoing._channel, incoming._channel):
            silence = channel.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000
            probed = channel.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            assert (fence or DEFAULT_FENCE_SECONDS) + probed < silence <= MAX_FENCE_SECONDS + 60
            assert channel.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_a_client_that_dies_ends_all_that_it_started(rank_group: RemoteRankGroup) -> None:
    """Also daemonized processes that ignore SIGTERM."""
    script = "trap '' TERM; (setsid sh -c \"trap '' TERM; echo there; sleep 300\" &); echo here; sleep 300"
    called = rank_group.call("algo-2", script)
    rank_group.turn_until(lambda: called.out.read_text().count("here") >= 1 and "there" in called.out.read_text())
    rank_group.turn_until(lambda: len(processes.find_by_environment(b"MUSTER_CALL=1.1")) >= 4)
    os.kill(called.pid, signal.SIGTERM)
    rank_group.turn_until(lambda: not processes.find_by_environment(b"MUSTER_CALL=1.1"), seconds=30)
    rank_group.turn_until(lambda: not rank_group.remote_commands[1]._incoming)


def test_what_a_good_end_leaves_is_left(rank_group: RemoteRankGroup) -> None:
    called = rank_group.call("algo-2", "setsid sleep 300 & exit 0")
    assert rank_group.wait_for_exit(called) == 0
    rank_group.turn_until(lambda: not rank_group.remote_commands[1]._incoming)
    # The kernel shows no environment while a process executes another program, as setsid does here.
    rank_group.turn_until(lambda: len(processes.find_by_environment(b"MUSTER_CALL=1.1")) == 1)


def test_a_node_that_listens_late(rank_group: RemoteRankGroup) -> None:
    """It gets Start a moment after node 0."""
    late = rank_group.remote_commands.pop()
    late.close()
    rank_group.ports[1].close()
    called = rank_group.call("algo-2", "echo $NODE")
    for _ in range(20):
        rank_group.turn()
    rank_group.listen_again()
    assert (rank_group.wait_for_exit(called), called.out.read_text()) == (0, "1\n")


def test_many_at_once(rank_group: RemoteRankGroup) -> None:
    called = [rank_group.call("algo-2", f"echo {number}; exit {number}") for number in range(20)]
    for number, one in enumerate(called):
        assert (rank_group.wait_for_exit(one), one.out.read_text()) == (number, f"{number}\n")


def test_no_key_is_left_on_disk(rank_group: RemoteRankGroup) -> None:
    files = [file for file in rank_group.folder.rglob("*") if file.is_file()]
    assert files
    assert not any(b"PRIVATE KEY" in file.read_bytes() for file in files)
