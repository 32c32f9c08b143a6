"""The hook in a rank's Python: programs that it must not disturb, and processes in which it must not run."""

import ast
import os
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from fakes.rank_side_agent import PYTHONS, Agent
from muster_dev.pythons import find_python
from muster_worker.agent.state import RaisedError
from muster_worker.rank import stop_file
from muster_worker.rank_group import link, progress

REPORT = "import muster_worker; muster_worker.report(step={step})\n"
PRINT_STATE = """
import os, sys
print(sys.modules.get("sitecustomize"), sys.modules.get("usercustomize"))
print({name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "MUSTER_HOOK", "MUSTER_PROG"))})
print([entry for entry in sys.path if entry != os.environ["MUSTER_ARCHIVE"]])
print(sorted(type(finder).__name__ for finder in sys.meta_path if "muster" not in type(finder).__module__))
"""


def _script(agent: Agent, text: str, name: str = "train.py") -> str:
    path = agent.folder / name
    path.write_text(text)
    return str(path)


def _both(agent: Agent, command: list[str], **more: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """(output, errors) of a command as a rank, and without muster."""
    heard = agent.run_rank(*command, **more)
    plain = subprocess.run(
        command,
        env={**agent.make_environment(), "RANK": "3", "LOCAL_RANK": "1", **more},
        cwd=agent.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return (heard.text, heard.errors), (plain.stdout, plain.stderr)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("pythonpath", "sitecustomize"),
    [
        *((path, "print('mine')") for path in (None, "", "FOLDER", "FOLDER:", ":FOLDER", "/nosuch:FOLDER")),
        *(("FOLDER", text) for text in (None, "1/0", "import nosuch_module", "raise SystemError", "raise ImportError")),
    ],
)
def test_nothing_of_the_user_s_is_lost(
    agent: Agent, python: str, pythonpath: str | None, sitecustomize: str | None
) -> None:
    folder = agent.folder / "mine"
    folder.mkdir()
    if sitecustomize is not None:
        (folder / "sitecustomize.py").write_text(sitecustomize)
        (folder / "usercustomize.py").write_text("print('user')")
    more = {} if pythonpath is None else {"PYTHONPATH": pythonpath.replace("FOLDER", str(folder))}
    as_rank, plain = _both(agent, [python, _script(agent, PRINT_STATE)], **more)
    assert as_rank == plain
    assert agent.heard[0].progress.pid == agent.heard[0].started.pid


def test_a_sitecustomize_of_the_virtual_environment_is_loaded(agent: Agent) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(agent.folder / "venv")], check=True)
    packages = next((agent.folder / "venv" / "lib").glob("python*/site-packages"))
    (packages / "sitecustomize.py").write_text("print('the environment\\'s', __file__)")
    as_rank, plain = _both(agent, [str(agent.folder / "venv" / "bin" / "python"), _script(agent, PRINT_STATE)])
    assert as_rank == plain
    assert "the environment's" in plain[0]


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_pythons_too_old_for_the_hook_run_without_it(agent: Agent, version: str) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    (agent.folder / "sitecustomize.py").write_text("print('mine')")
    program = ["-c", "import sitecustomize; print(sitecustomize.__file__)"]
    heard = agent.run_rank(python, *program, PYTHONPATH=str(agent.folder))
    assert heard.text.startswith(f"mine\n{agent.folder}/sitecustomize.py")
    assert heard.errors == ""
    assert progress.find_no_step_reason(heard.progress, [python, *program]) == "NotHooked"


def test_the_sitecustomize_is_written_for_any_python() -> None:
    """Checked without an old Python: it has no syntax that Python 2.7 can't parse."""
    source = files("muster_worker").joinpath("site/sitecustomize.py").read_text()
    modern = (ast.FunctionDef, ast.AnnAssign, ast.JoinedStr, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal)
    assert [node for node in ast.walk(ast.parse(source)) if isinstance(node, modern)] == []
    assert "__future__" not in source
    assert source.isascii()


@pytest.mark.parametrize("python", PYTHONS)
def test_report_reaches_the_agent(agent: Agent, python: str) -> None:
    script = "import muster_worker\nmuster_worker.report(4)\nmuster_worker.report(loss=0.5, acc=1)\n"
    seen = agent.run_rank(python, _script(agent, script + "muster_worker.report(step=5, loss=float('nan'))")).progress
    assert (seen.step, dict(seen.metrics)) == (5, {"loss": 0.5, "acc": 1.0})
    assert seen.reported_at is not None


def test_a_report_that_does_not_fit_is_left_out_and_said(agent: Agent) -> None:
    script = """
import muster_worker
muster_worker.report(1, good=1)
for number in range(200):
    muster_worker.report(2, **{f"metric_{number}" + "x" * 40: 1.0})
"""
    heard = agent.run_rank(sys.executable, _script(agent, script))
    assert heard.errors == ""
    assert heard.progress.is_report_full
    assert heard.progress.metrics["good"] == 1.0
    assert heard.progress.step == 2


@pytest.mark.parametrize("python", PYTHONS)
def test_only_the_rank_s_own_calls_of_stopping_count(agent: Agent, python: str) -> None:
    stop_file.create(str(agent.folder))
    script = """
import os
import muster_worker
assert not muster_worker.stopping()
pid = os.fork()
if pid == 0:
    os._exit(any(muster_worker.stopping() for _ in range(5)))
assert os.waitpid(pid, 0)[1] == 0
assert not muster_worker.stopping()
"""
    heard = agent.run_rank(python, _script(agent, script))
    assert heard.errors == ""
    assert heard.progress.stopping_calls == 2


CHILDREN = {
    "fork": "pid = os.fork()\nif pid == 0:\n    muster_worker.report(step=99)\n    os._exit(0)\nos.waitpid(pid, 0)",
    "subprocess": "subprocess.run([sys.executable, os.environ['OTHER']], check=True)",
    "shell": "os.system(sys.executable + ' ' + os.environ['OTHER'])",
    "multiprocessing fork": "run('fork')",
    "multiprocessing spawn": "run('spawn')",
    "multiprocessing forkserver": "run('forkserver')",
}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("kind", sorted(CHILDREN))
def test_a_rank_s_children_are_not_the_rank(agent: Agent, kind: str, python: str) -> None:
    script = f"""
import multiprocessing, os, subprocess, sys
import muster_worker
def child():
    muster_worker.report(step=99)
def run(method):
    process = multiprocessing.get_context(method).Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0, process.exitcode
if __name__ == "__main__":
    muster_worker.report(step=1)
    {CHILDREN[kind].replace(chr(10), chr(10) + "    ")}
    print("done")
"""
    other = "try:\n    import muster_worker\nexcept ImportError:\n    pass\nelse:\n    muster_worker.report(step=99)"
    heard = agent.run_rank(python, "-Wignore", _script(agent, script), OTHER=_script(agent, other, "other.py"))
    assert (heard.text, heard.errors) == ("done\n", "")
    assert heard.progress.step == 1
    assert heard.progress.pid == heard.started.pid


def test_the_next_python_takes_a_dead_one_s_place(agent: Agent) -> None:
    first = _script(agent, REPORT.format(step=50), "prepare.py")
    second = _script(agent, REPORT.format(step=2) + "import os; print(os.getpid())", "train.py")
    heard = agent.run_rank("sh", "-c", f"{sys.executable} {first} && {sys.executable} {second}")
    assert heard.progress.step == 2
    assert heard.progress.pid == int(heard.text)


def test_a_second_python_beside_a_living_one_is_not_the_rank(agent: Agent) -> None:
    script = "import muster_worker, sys; muster_worker.report(step=1); print('one', flush=True); sys.stdin.read()"
    first = _script(agent, script, "one.py")
    second = _script(agent, REPORT.format(step=2), "two.py")
    shell = (
        f"mkfifo gate; {sys.executable} {first} <gate & exec 3>gate; read line <go; {sys.executable} {second}; echo two"
    )
    os.mkfifo(agent.folder / "go")
    agent.start("sh", "-c", shell)
    agent.wait_for_output("one\n")
    with (agent.folder / "go").open("w") as go:
        go.write("\n")
    assert agent.wait_for_output("two\n").progress.step == 1
    agent.wait_until(lambda: agent.heard[0].is_over)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ([sys.executable, "-S"], "PythonIsolated"),
        ([sys.executable, "-I"], "PythonIsolated"),
        ([sys.executable, "-E"], "PythonIsolated"),
        ([sys.executable, "-u"], "NoTorch"),
        (["sh"], "NotPython"),
    ],
)
def test_a_rank_without_steps_says_why(agent: Agent, command: list[str], reason: str) -> None:
    text = "echo ready; read line" if command == ["sh"] else "print('ready', flush=True); import time; time.sleep(600)"
    if command == ["sh"]:
        text = "echo ready; while :; do sleep 0.01; done"
    agent.start(*command, _script(agent, text))
    heard = agent.wait_for_output("ready\n")
    arguments = Path(f"/proc/{heard.started.pid}/cmdline").read_text().split("\0")[:-1]
    assert progress.find_no_step_reason(heard.progress, arguments) == reason


def test_a_node_s_command_keeps_the_hook_for_the_ranks_that_it_starts(agent: Agent) -> None:
    """As with deepspeed: a launcher without a RANK starts Pythons with one, and ignores PYTHON_EXEC."""
    launcher = """
import os, subprocess, sys
codes = []
for rank in range(2):
    environment = {**os.environ, "RANK": str(4 + rank), "LOCAL_RANK": str(rank)}
    codes.append(subprocess.run([sys.executable, "-u", "train.py", "a b"], env=environment).returncode)
print(codes)
"""
    script = """
import os, sys, muster_worker
muster_worker.report(step=7)
print(sys.argv, 'PYTHONPATH' in os.environ)
sys.exit(3 + int(os.environ['LOCAL_RANK']))
"""
    _script(agent, script)
    command = [sys.executable, _script(agent, launcher, "launch.py")]
    agent.spawn(
        [sys.executable, "-I", "-S", str(agent.archive), "rank", "--", *command],
        agent.make_environment(MUSTER_RANK="2", MUSTER_LOCAL_RANK="0"),
    )
    agent.wait_until(lambda: len(agent.heard) == 3 and all(heard.is_over for heard in agent.heard))
    node, first, second = agent.heard
    assert [(heard.hello.rank, heard.hello.local_rank, heard.hello.role) for heard in agent.heard] == [
        (2, 0, "wrapper"),
        (4, 0, "hook"),
        (5, 1, "hook"),
    ]
    for heard, code in ((first, 3), (second, 4)):
        assert isinstance(heard.last, link.EndedMessage)
        assert heard.last.exit_code == code
        assert heard.progress.step == 7
        assert heard.progress.pid == heard.started.pid
    line = "['train.py', 'a b'] False\n"
    assert node.text == line + line + "[3, 4]\n"
    assert node.errors == ""


NEEDED_BY_EACH_RANK = ["hook", "hook_environment", "progress_file", "raised_error", "stack_signal", "torch_import"]


def test_a_rank_imports_only_what_each_rank_needs(agent: Agent) -> None:
    """Many ranks start at once after a failure, and each import delays them all."""
    script = 'import sys; print(sorted(name for name in sys.modules if name.startswith("muster_worker.")))'
    heard = agent.run_rank(sys.executable, _script(agent, script))
    names = ["muster_worker.rank", *(f"muster_worker.rank.{name}" for name in NEEDED_BY_EACH_RANK)]
    assert heard.text == f"{names}\n"


SPAWNED = r"""
raise OSError('Caught it.\nOriginal Traceback (most recent call last):\n  File "t.py", line 9\nValueError: sample 5')
"""
TEARDOWN = """
import os
from torch.distributed import distributed_c10d
try:
    raise ValueError("bad batch")
finally:
    distributed_c10d.destroy_process_group()
    END
"""


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("raise ValueError('bad\\nbatch')", RaisedError("ValueError: bad\nbatch", 0.0, is_uncaught=True)),
        ("import queue\nraise queue.Empty", RaisedError("_queue.Empty", 0.0, is_uncaught=True)),
        (
            "raise RuntimeError('bad\\nException raised from a.cpp:1\\nframe #0')",
            RaisedError("RuntimeError: bad", 0.0, is_uncaught=True),
        ),
        ("import sys\nsys.exit('bad')", None),
        ("raise KeyboardInterrupt", None),
        ("import sys\ntry:\n    1 / 0\nexcept Exception:\n    sys.excepthook(*sys.exc_info())", None),
        (
            SPAWNED,
            RaisedError("ValueError: sample 5", 0.0, is_uncaught=True),
        ),
        ("import os\nif os.fork() == 0:\n    raise ValueError('of a child')\nos.wait()", None),
        (TEARDOWN.replace("END", "os._exit(3)"), RaisedError("ValueError: bad batch", 0.0)),
        (TEARDOWN.replace("END", "1 / 0"), RaisedError("ValueError: bad batch", 0.0, is_uncaught=True)),
        (TEARDOWN.replace("raise ValueError", "print").replace("END", ""), None),
    ],
)
def test_an_error_is_recorded_when_it_is_raised(agent: Agent, script: str, error: RaisedError | None) -> None:
    module = agent.folder / "torch" / "distributed" / "distributed_c10d.py"
    module.parent.mkdir(parents=True)
    for folder in (module.parent, module.parent.parent):
        (folder / "__init__.py").touch()
    module.write_text("def destroy_process_group(): pass\n")
    recorded = agent.run_rank(sys.executable, _script(agent, script)).progress.error
    assert (recorded and replace(recorded, at=0.0, activity=None)) == error
    assert recorded is None or (recorded.activity or "").startswith("train.py:")


@pytest.mark.parametrize("name", ["report(step=99)", "stopping()", "phase('eval').__enter__()"])
def test_a_child_that_is_forked_before_the_first_use_is_not_the_rank(agent: Agent, name: str) -> None:
    stop_file.create(str(agent.folder))
    script = f"""
import os
import muster_worker
pid = os.fork()
if pid == 0:
    muster_worker.{name}
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    heard = agent.run_rank(sys.executable, _script(agent, script))
    assert heard.errors == ""
    assert heard.progress.pid == heard.started.pid
    assert (heard.progress.step, heard.progress.stopping_calls, heard.progress.phase) == (None, 0, "")
