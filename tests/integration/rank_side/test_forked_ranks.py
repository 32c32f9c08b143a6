"""Ranks that a fork server forks: they are like ranks that start by themselves."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from fakes.rank_side_agent import PYTHONS, Agent, Heard
from integration.run.muster_run import await_true
from muster_worker.agent.fork_server import start_server
from muster_worker.fork_server import spares
from muster_worker.fork_server.command import PythonCommand
from muster_worker.machine.processes import list_descendants, process_exists
from muster_worker.rank.hook_environment import FORK_SERVER, SCOPE_RANK, add_hook
from muster_worker.rank_group import link

TORCH = """
import os, time
class Generator:
    def seed(self): pass
default_generator = Generator()
"""

PROBE = """
import atexit, json, multiprocessing, os, resource, signal, sys, threading
import torch
def double(value): return 2 * value
class Thing: pass
if __name__ == "__main__":
    import pickle
    assert type(pickle.loads(pickle.dumps(Thing()))) is Thing
    main = sys.modules["__main__"]
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    results = {}
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            results[method] = pool.map(double, [21])
    changing = ("MUSTER_PROGRESS",)
    print(json.dumps({
        "results": results,
        "argv": sys.argv, "orig_argv": getattr(sys, "orig_argv", None), "path": sys.path, "flags": str(sys.flags),
        "executable": sys.executable, "prefix": sys.prefix, "warnoptions": sys.warnoptions,
        "main": {name: str(getattr(main, name, "missing")) for name in
                 ("__name__", "__file__", "__spec__", "__package__", "__doc__", "__cached__", "__builtins__")},
        "loader": str(type(main.__loader__)), "names": sorted(vars(main)),
        "environment": dict(os.environ), "cwd": os.getcwd(),
        "fds": sorted(set(os.listdir("/proc/self/fd")) - {"3"}), "targets": [os.readlink("/proc/self/fd/0")],
        "inheritable": [os.get_inheritable(number) for number in range(3)],
        "tty": [stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "buffering": [stream.line_buffering for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "encoding": [stream.encoding for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "signals": {name: status[name] for name in ("SigBlk", "SigIgn")},
        "handlers": [str(signal.getsignal(number)).partition(" at ")[0] for number in
                     (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)],
        "limits": [resource.getrlimit(limit) for limit in range(16)],
        "umask": os.umask(0o22), "nice": os.getpriority(os.PRIO_PROCESS, 0), "cpus": sorted(os.sched_getaffinity(0)),
        "leads": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid(), os.getsid(0) == os.getppid()],
        "threads": [thread.name for thread in threading.enumerate()],
        "main thread": threading.current_thread() is threading.main_thread(),
        "hooks": [sys.excepthook is sys.__excepthook__, type(sys.settrace).__name__],
        "command line": open("/proc/self/cmdline").read().rstrip(chr(0)),
    }))
"""


@pytest.fixture(params=[0, 2], ids=["without spares", "with spares"])
def fork_server(agent: Agent, request: pytest.FixtureRequest) -> Iterator[Callable[..., int]]:
    """Starts a fork server for the agent's ranks, with a module `torch` that takes no time."""
    pids: list[int] = []

    def start(python: str = sys.executable, *options: str, torch: str = TORCH, **more: str) -> int:
        if not (agent.folder / "modules").exists():
            (agent.folder / "torch.py").write_text(torch)
        variables = {name: value for name, value in agent.make_environment(**more).items() if name != "MUSTER_RUN_DIR"}
        parsed = PythonCommand(python, options, "train.py", "")
        environment = add_hook(variables, str(agent.archive), SCOPE_RANK)
        with chdir(agent.folder):
            pids.append(start_server(parsed, ("torch",), environment, _socket(agent), spares=request.param))
        return pids[-1]

    yield start
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# A rank that the server refuses starts alike with spares, which the server doesn't touch then.
WITHOUT_SPARES = pytest.mark.parametrize("fork_server", [0], indirect=True, ids=["without spares"])


def _socket(agent: Agent) -> str:
    return str(agent.folder / "fork.sock")


def _script(agent: Agent, text: str) -> str:
    (agent.folder / "train.py").write_text(text)
    return "train.py"


def _variables(agent: Agent, **more: str) -> dict[str, str]:
    return {"PYTHONPATH": str(agent.folder), **more}


def _server(agent: Agent) -> dict[str, str]:
    return {FORK_SERVER: _socket(agent)}


def _rank(agent: Agent, *command: str, **more: str) -> Heard:
    return agent.run_rank(*command, **_variables(agent, **more), **_server(agent))


def _start(agent: Agent, *command: str) -> "subprocess.Popen[bytes]":
    variables = _variables(agent, RANK="3", LOCAL_RANK="1", **{FORK_SERVER: _socket(agent)})
    wrapped = [sys.executable, "-I", "-S", str(agent.archive), "rank", "--", *command]
    return agent.spawn(wrapped, agent.make_environment(**variables))


def _forked(agent: Agent, *command: str, **more: str) -> Heard:
    heard = _rank(agent, *command, **more)
    assert heard.started.not_forked is None
    return heard


def _end(heard: Heard) -> tuple[int | None, int | None]:
    assert isinstance(heard.last, link.EndedMessage)
    return heard.last.exit_code, heard.last.signal


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("options", "more"), [((), {}), (("-u", "-O"), {}), ((), {"PYTHONSAFEPATH": "1", "LC_ALL": "C"})]
)
def test_a_script_sees_what_it_sees_without_a_fork_server(
    agent: Agent, fork_server: Callable[..., int], python: str, options: tuple[str, ...], more: dict[str, str]
) -> None:
    command = (python, *options, _script(agent, PROBE), "--epochs", "", "ä b")
    (agent.folder / "torch.py").write_text(TORCH)
    plain = agent.run_rank(*command, **_variables(agent, **more))
    fork_server(python, *options, **_variables(agent, **more))
    forked = _forked(agent, *command, **more)
    assert (plain.errors, forked.errors) == ("", "")
    assert json.loads(forked.text) == json.loads(plain.text)
    assert _end(forked) == _end(plain) == (0, None)


def test_python_without_the_script_s_folder_keeps_the_user_s_folders(
    agent: Agent, fork_server: Callable[..., int]
) -> None:
    more = {"PYTHONSAFEPATH": "1"}
    fork_server(**_variables(agent), **more)
    heard = _forked(agent, sys.executable, _script(agent, "import sys, torch; print(sys.path[0])"), **more)
    assert heard.text == f"{agent.folder}\n"


@pytest.mark.parametrize(
    "text",
    [
        "import torch, sys; sys.exit(7)",
        "import torch, sys; sys.exit('that was wrong')",
        "import torch\ndef train():\n    raise ValueError('bad loss')\ntrain()",
        "import torch\ntry:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('x') from error",
        "import torch\nthis is not Python",
        "import torch, os; os.kill(os.getpid(), 11)",
        "import torch; raise KeyboardInterrupt",
        "import torch, sys; sys.excepthook = lambda *args: print('mine', args[0].__name__, args[2].tb_lineno); 1 / 0",
        "import atexit, torch; atexit.register(print, 'at exit'); print('end')",
        "import threading, time, torch; threading.Thread(target=lambda: (time.sleep(.1), print('thread'))).start()",
        "import torch, os; os._exit(9)",
        "import torch, sys; print('partial', end=''); print('error', end='', file=sys.stderr)",
    ],
)
def test_a_program_ends_as_without_a_fork_server(agent: Agent, fork_server: Callable[..., int], text: str) -> None:
    command = (sys.executable, _script(agent, text))
    (agent.folder / "torch.py").write_text(TORCH)
    plain = agent.run_rank(*command, **_variables(agent))
    fork_server(**_variables(agent))
    forked = _forked(agent, *command)
    assert (forked.text, forked.errors) == (plain.text, plain.errors)
    assert _end(forked) == _end(plain)
    assert len({process.wait() for process in agent.processes}) == 1


def _list_spares(fork_server: int) -> set[int]:
    """Return the pids of the processes that would become the next ranks."""
    return {rank for parent in _list_children(fork_server) for rank in _list_children(parent) if _is_spare(rank)}


def _list_children(pid: int) -> set[int]:
    try:
        return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return set()


def _is_spare(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == f"{spares.NAME}\n"
    except OSError:
        return False


@pytest.mark.parametrize("fork_server", [2], indirect=True, ids=["with spares"])
def test_a_spare_becomes_the_rank_and_belongs_to_the_attempt_from_then_on(
    agent: Agent, fork_server: Callable[..., int]
) -> None:
    pid = fork_server(**_variables(agent))
    await_true(lambda: len(_list_spares(pid)) == 2, 30.0)
    before = _list_spares(pid)
    assert before.isdisjoint(list_descendants(pid))
    assert before < set(list_descendants())
    _start(agent, sys.executable, _script(agent, "import time, torch; print('up', flush=True); time.sleep(99)"))
    rank = agent.wait_for_output("up").started.pid
    assert rank in before
    parent = next(parent for parent in _list_children(pid) if rank in _list_children(parent))
    assert {rank, parent} < set(list_descendants(pid))
    await_true(lambda: len(_list_spares(pid)) == 2, 30.0)
    os.kill(pid, signal.SIGKILL)
    await_true(lambda: not any(map(process_exists, _list_spares(pid) | before - {rank})), 30.0)
    assert process_exists(rank)


def test_ranks_have_different_random_numbers(agent: Agent, fork_server: Callable[..., int]) -> None:
    script = _script(agent, "import random, torch, uuid; print(random.random(), uuid.uuid4())")
    fork_server(**_variables(agent))
    assert len({number for _ in range(3) for number in _forked(agent, sys.executable, script).text.split()}) == 6


def test_what_an_import_prints_is_in_each_rank_s_output(agent: Agent, fork_server: Callable[..., int]) -> None:
    fork_server(torch=f"{TORCH}\nimport sys; print('no GPU', file=sys.stderr)", **_variables(agent))
    command = (sys.executable, _script(agent, "import torch; print('trains')"))
    heard = [_forked(agent, *command) for _ in range(2)]
    assert [(each.errors, each.text) for each in heard] == [("no GPU\n", "trains\n")] * 2


@WITHOUT_SPARES
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"OMP_NUM_THREADS": "3"}, "variable OMP_NUM_THREADS differs"),
        ({"PYTHONHASHSEED": "1"}, "variable PYTHONHASHSEED differs"),
        ({"LD_PRELOAD": ""}, "variable LD_PRELOAD differs"),
    ],
)
def test_a_doubt_leads_to_a_plain_start(
    agent: Agent, fork_server: Callable[..., int], more: dict[str, str], why: str
) -> None:
    fork_server(**_variables(agent))
    command = (sys.executable, _script(agent, "import torch; print('trains')"))
    heard = _rank(agent, *command, **more)
    assert why in (heard.started.not_forked or "")
    assert (heard.text, _end(heard)) == ("trains\n", (0, None))


@WITHOUT_SPARES
@pytest.mark.parametrize(
    ("torch", "why"),
    [
        ("raise ImportError('libcudart.so: no such file')", "torch could not be imported: ImportError: libcudart.so"),
        ("import sys; sys.exit(3)", "torch could not be imported: SystemExit: 3"),
        ("import threading, time; threading.Thread(target=time.sleep, args=(99,), daemon=True).start()", "threads"),
    ],
)
def test_an_import_that_can_t_be_shared_leads_to_a_plain_start(
    agent: Agent, fork_server: Callable[..., int], torch: str, why: str
) -> None:
    fork_server(torch=torch, **_variables(agent))
    heard = _rank(agent, sys.executable, _script(agent, "print('trains')"))
    assert why in (heard.started.not_forked or "")
    assert (heard.text, _end(heard)) == ("trains\n", (0, None))


def test_a_library_that_ends_its_threads_before_a_fork_can_be_shared(
    agent: Agent, fork_server: Callable[..., int]
) -> None:
    # On a machine with one core OpenBLAS has no threads.
    more = {"OMP_NUM_THREADS": "2"}
    text = "import numpy, torch; print(numpy.ones((300, 300)).dot(numpy.ones((300, 300))).sum())"
    fork_server(torch=f"{TORCH}\nimport numpy", **_variables(agent, **more))
    assert _forked(agent, sys.executable, _script(agent, text), **more).text == "27000000.0\n"


@WITHOUT_SPARES
@pytest.mark.parametrize(("own", "is_forked"), [("scripts", False), (".", True)])
def test_a_module_of_the_user_s_is_not_taken_for_another(
    agent: Agent, fork_server: Callable[..., int], own: str, *, is_forked: bool
) -> None:
    for folder in ("scripts", "modules"):
        (agent.folder / folder).mkdir()
    (agent.folder / own / "colorsys.py").write_text("print('of the user')")
    (agent.folder / "modules" / "torch.py").write_text(f"{TORCH}\nimport colorsys")
    (agent.folder / "scripts" / "train.py").write_text("import torch; print(torch.colorsys.__file__)")
    more = {"PYTHONPATH": str(agent.folder / "modules")}
    fork_server(**more)
    plain, forked = (
        agent.run_rank(sys.executable, "scripts/train.py", **more, **each) for each in ({}, _server(agent))
    )
    assert forked.text == plain.text
    assert (forked.started.not_forked is None) == is_forked


@pytest.mark.parametrize(
    ("imports", "hides", "is_forked"),
    [("", "", True), ("import part", "", False), ("import colorsys", "colorsys", False)],
)
def test_code_in_another_folder_than_the_fork_server_s_is_forked_if_no_import_has_loaded_it(
    agent: Agent, fork_server: Callable[..., int], imports: str, hides: str, *, is_forked: bool
) -> None:
    for folder in ("modules", "own", "edited/scripts"):
        (agent.folder / folder).mkdir(parents=True)
    (agent.folder / "modules" / "torch.py").write_text(f"{TORCH}\n{imports}")
    for folder in ("own", "edited"):
        (agent.folder / folder / "part.py").write_text(f"NAME = {folder!r}")
    if hides:
        (agent.folder / "edited" / f"{hides}.py").write_text("")
    text = "import sys, torch, part, colorsys; print(part.NAME, colorsys.__file__, sys.path)"
    (agent.folder / "edited" / "scripts" / "train.py").write_text(text)
    fork_server(PYTHONPATH=f"{agent.folder}/own:{agent.folder}/modules")
    more = {"PYTHONPATH": f"{agent.folder}/edited:{agent.folder}/modules"}
    command = (sys.executable, str(agent.folder / "edited" / "scripts" / "train.py"))
    plain, forked = (agent.run_rank(*command, **more, **each) for each in ({}, _server(agent)))
    assert forked.text == plain.text
    assert plain.text.startswith("edited ")
    assert (forked.started.not_forked is None) == is_forked


@WITHOUT_SPARES
def test_a_rank_does_not_wait_for_an_import_that_it_can_t_use(agent: Agent, fork_server: Callable[..., int]) -> None:
    shim = agent.folder / "python"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    shim.chmod(0o755)
    more = {"PATH": f"{agent.folder}:/usr/bin:/bin"}
    fork_server("python", torch="import time; time.sleep(99)", **_variables(agent, **more))
    heard = _rank(agent, "python", _script(agent, "print('trains')"), **more)
    assert f"python is a program that starts {sys.executable}" in (heard.started.not_forked or "")
    assert heard.text == "trains\n"


@WITHOUT_SPARES
def test_the_user_s_customization_may_depend_on_the_rank(agent: Agent, fork_server: Callable[..., int]) -> None:
    python = os.path.realpath(sys.executable)  # a virtual environment has no folder of the user's
    line = "import site; print(site.getusersitepackages())"
    more = {"PYTHONUSERBASE": str(agent.folder)}
    folder = subprocess.run(
        [python, "-c", line], env={**os.environ, **more}, capture_output=True, text=True, check=True
    )
    Path(folder.stdout.strip()).mkdir(parents=True)
    text = "import builtins, os; builtins.place = os.environ.get('RANK')"
    (Path(folder.stdout.strip()) / "usercustomize.py").write_text(text)
    fork_server(python, **_variables(agent, **more))
    heard = _rank(agent, python, _script(agent, "import builtins, torch; print(builtins.place)"), **more)
    assert heard.text == "3\n"
    assert "usercustomize.py runs at the start" in (heard.started.not_forked or "")


@WITHOUT_SPARES
@pytest.mark.parametrize("command", [("sh", "-c", "echo trains"), (sys.executable, "-c", "print('trains')")])
def test_another_command_starts_plainly(
    agent: Agent, fork_server: Callable[..., int], command: tuple[str, ...]
) -> None:
    fork_server(**_variables(agent))
    heard = _rank(agent, *command)
    assert heard.started.not_forked
    assert (heard.text, _end(heard)) == ("trains\n", (0, None))


def test_a_rank_that_may_not_become_what_it_should_starts_plainly(
    agent: Agent, fork_server: Callable[..., int]
) -> None:
    fork_server(**_variables(agent))
    asks_for_other_cpus = f"""
import os, sys
sys.path.insert(0, {str(agent.archive)!r})
os.sched_getaffinity = lambda pid: {{9999}}
from muster_worker.rank import wrapper
wrapper.main(["--", {sys.executable!r}, {_script(agent, "print('trains')")!r}])
"""
    variables = _variables(agent, RANK="3", LOCAL_RANK="1", **{FORK_SERVER: _socket(agent)})
    agent.spawn([sys.executable, "-c", asks_for_other_cpus], agent.make_environment(**variables))
    heard = agent.wait_until(lambda: bool(agent.heard) and agent.heard[-1].is_over)
    assert "OSError" in (heard.started.not_forked or "")
    assert (heard.text, _end(heard)) == ("trains\n", (0, None))


@WITHOUT_SPARES
def test_a_rank_starts_without_the_fork_server_that_has_ended(agent: Agent, fork_server: Callable[..., int]) -> None:
    pid = fork_server(**_variables(agent))
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    command = (sys.executable, _script(agent, "print('trains')"))
    heard = _rank(agent, *command)
    assert "does not answer" in (heard.started.not_forked or "")
    assert heard.text == "trains\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_a_forked_rank(agent: Agent, fork_server: Callable[..., int], number: signal.Signals) -> None:
    text = f"""
import signal, sys, time, torch
signal.signal({int(number)}, lambda *_: sys.exit(5))
print("up", flush=True)
while True:
    time.sleep(0.05)  # a signal just before signal.pause() would wait for another one
"""
    fork_server(**_variables(agent))
    wrapper = _start(agent, sys.executable, _script(agent, text))
    agent.wait_for_output("up")
    wrapper.send_signal(number)
    heard = agent.wait_until(lambda: agent.heard[-1].is_over)
    assert _end(heard) == (5, None)
    assert wrapper.wait() == 5


def test_a_signal_to_the_group_reaches_all_processes_of_a_forked_rank(
    agent: Agent, fork_server: Callable[..., int]
) -> None:
    text = """
import os, signal, sys, time, torch
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(6))
    os.write(writer, b"!")
    while True:
        time.sleep(0.05)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.read(reader, 1)
print("up", flush=True)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    fork_server(**_variables(agent))
    wrapper = _start(agent, sys.executable, _script(agent, text))
    agent.wait_for_output("up")
    os.killpg(wrapper.pid, signal.SIGTERM)
    assert _end(agent.wait_until(lambda: agent.heard[-1].is_over)) == (6, None)


def test_a_rank_can_signal_its_own_group(agent: Agent, fork_server: Callable[..., int]) -> None:
    text = """
import os, signal, torch
signal.signal(signal.SIGTERM, lambda *_: print("handled"))
os.killpg(0, signal.SIGTERM)
"""
    fork_server(**_variables(agent))
    heard = _forked(agent, sys.executable, _script(agent, text))
    assert (heard.text, _end(heard)) == ("handled\n", (0, None))


@pytest.mark.parametrize("victim", ["wrapper", "rank"])
def test_a_killed_rank_or_wrapper_leaves_nothing(agent: Agent, fork_server: Callable[..., int], victim: str) -> None:
    fork_server(**_variables(agent))
    text = "import time, torch; print('up', flush=True); time.sleep(99)"
    wrapper = _start(agent, sys.executable, _script(agent, text))
    heard = agent.wait_for_output("up")
    rank = heard.started.pid
    os.kill(wrapper.pid if victim == "wrapper" else rank, signal.SIGKILL)
    heard = agent.wait_until(lambda: agent.heard[-1].is_over)
    if victim == "rank":
        assert _end(heard) == (None, signal.SIGKILL)
    assert wrapper.wait() == -signal.SIGKILL
    await_true(lambda: not process_exists(rank), 30.0)


def test_a_rank_that_waits_for_the_import_ends_by_a_signal(agent: Agent, fork_server: Callable[..., int]) -> None:
    fork_server(torch="import time; time.sleep(99)", **_variables(agent))
    command = (sys.executable, _script(agent, "import torch"))
    wrapper = _start(agent, *command)
    agent.wait_until(lambda: bool(agent.heard))
    wrapper.terminate()
    heard = agent.wait_until(lambda: agent.heard[-1].is_over)
    assert _end(heard) == (None, signal.SIGTERM)
    assert wrapper.wait() == -signal.SIGTERM


def test_a_rank_that_waits_for_the_import_ignores_what_its_launcher_ignored(
    agent: Agent, fork_server: Callable[..., int]
) -> None:
    wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)"
    fork_server(torch=f"{TORCH}\n{wait}", **_variables(agent))
    wrapped = [sys.executable, "-I", "-S", str(agent.archive), "rank", "--", sys.executable]
    variables = agent.make_environment(RANK="3", LOCAL_RANK="1", **_variables(agent), **_server(agent))
    line = ["bash", "-c", 'trap "" HUP; exec "$@"', "bash", *wrapped, _script(agent, "import torch; print('trains')")]
    wrapper = agent.spawn(line, variables)
    agent.wait_until(lambda: bool(agent.heard))
    wrapper.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    (agent.folder / "go").touch()
    heard = agent.wait_until(lambda: agent.heard[-1].is_over)
    assert (heard.text, _end(heard)) == ("trains\n", (0, None))


@WITHOUT_SPARES
def test_other_users_can_t_connect(agent: Agent, fork_server: Callable[..., int]) -> None:
    mask = os.umask(0)
    try:
        fork_server(**_variables(agent))
    finally:
        os.umask(mask)
    assert stat.S_IMODE(Path(_socket(agent)).stat().st_mode) == 0o600


def test_a_rank_has_the_launcher_s_descriptors_limits_and_folder(agent: Agent, fork_server: Callable[..., int]) -> None:
    text = """
import os, resource, torch
print(os.read(int(os.environ["SM_PIPE"]), 99).decode(), os.getcwd(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
print(sorted(os.sched_getaffinity(0)), os.umask(0o22) == 0o27)
"""
    _script(agent, text)
    other = agent.folder / "other"
    other.mkdir()
    fork_server(**_variables(agent))
    reader, writer = os.pipe()
    os.write(writer, b"from the launcher")
    os.close(writer)
    variables = agent.make_environment(RANK="3", LOCAL_RANK="1", SM_PIPE=str(reader), **_variables(agent))
    script = str(agent.folder / "train.py")
    wrapped = [sys.executable, "-I", "-S", str(agent.archive), "rank", "--", sys.executable, script]
    line = 'ulimit -n 200; umask 027; exec taskset -c 0 "$@"'
    process = subprocess.Popen(
        ["sh", "-c", line, "sh", *wrapped],
        env={**variables, FORK_SERVER: _socket(agent)},
        cwd=other,
        pass_fds=(reader,),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.close(reader)
    agent.processes.append(process)
    heard = agent.wait_until(lambda: bool(agent.heard) and agent.heard[-1].is_over)
    assert (heard.errors, heard.started.not_forked) == ("", None)
    assert heard.text.splitlines() == [f"from the launcher {other} 200", "[0] True"]


@pytest.mark.parametrize("is_forked", [True, False])
def test_a_rank_has_descriptors_up_to_its_limit(
    agent: Agent, fork_server: Callable[..., int], *, is_forked: bool
) -> None:
    pid = fork_server(**_variables(agent))
    if not is_forked:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (60, 60))
    script = _script(agent, "import os, torch; os.fstat(63); print('trains')")
    wrapped = [sys.executable, "-I", "-S", str(agent.archive), "rank", "--", sys.executable, script]
    variables = agent.make_environment(RANK="3", LOCAL_RANK="1", **_variables(agent), **{FORK_SERVER: _socket(agent)})
    agent.spawn(["bash", "-c", 'exec 63</dev/null; ulimit -Sn 64; exec "$@"', "bash", *wrapped], variables)
    heard = agent.wait_until(lambda: bool(agent.heard) and agent.heard[-1].is_over)
    assert (heard.text, heard.errors, _end(heard)) == ("trains\n", "", (0, None))
    assert (heard.started.not_forked is None) == is_forked


def test_steps_and_reports_of_a_forked_rank_are_counted(agent: Agent, fork_server: Callable[..., int]) -> None:
    fork_server(**_variables(agent))
    script = _script(agent, "import muster_worker, torch; muster_worker.report(step=7, loss=1.5)")
    seen = _forked(agent, sys.executable, script).progress
    assert (seen.step, seen.metrics) == (7, {"loss": 1.5})


def test_a_launcher_that_starts_plainly_gets_signals(agent: Agent) -> None:
    text = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print("up", flush=True)
while True:
    time.sleep(0.05)  # a signal just before signal.pause() would wait for another one
"""
    command = [sys.executable, "-I", "-S", str(agent.archive), "launcher", _socket(agent), "--", sys.executable]
    launcher = agent.spawn([*command, _script(agent, text)], agent.make_environment())
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == b"up\n"
    launcher.terminate()
    assert launcher.wait() == 5


@WITHOUT_SPARES
def test_a_launcher_that_the_fork_server_refuses_starts_plainly(agent: Agent, fork_server: Callable[..., int]) -> None:
    fork_server(**_variables(agent))
    command = [sys.executable, "-I", "-S", str(agent.archive), "launcher", _socket(agent), "--", sys.executable]
    launcher = agent.spawn([*command, _script(agent, "print('launches')")], agent.make_environment(OMP_NUM_THREADS="3"))
    out, errors = launcher.communicate()
    assert (launcher.returncode, out) == (0, b"launches\n")
    assert b"OMP_NUM_THREADS differs" in errors
