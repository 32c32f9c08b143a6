"""The status names the rank that failed first, how and where, with real processes."""

import pathlib
import re
import shutil
import sys

import pytest

from integration.rank_truth.truth import TORCH_WORKLOAD, WORKLOAD, Case, run

pytestmark = pytest.mark.usefixtures("may_leave_temporary_files")

# torchrun, one for each node, uses the processors for seconds.
LAUNCHERS = (pytest.param("torchrun", marks=pytest.mark.long), "direct")

BEHAVIOURS: list[tuple[str, int, str, dict[str, int]]] = [
    ("exit-7", 2, r"Rank 2 on truth-1 failed with exit code 7", {"exitCode": 7}),
    ("kill", 1, r"Rank 1 on truth-0 was killed by SIGKILL", {"signal": 9}),
    ("raise", 3, r"Rank 3 on truth-1 .*ValueError: label 13 is not in 0\.\.9", {"exitCode": 1}),
    ("raise-and-upload", 3, r"Rank 3 on truth-1 .*ValueError: label 13 is not in 0\.\.9", {}),
    ("segfault", 2, r"Rank 2 on truth-1 .*SIGSEGV", {"signal": 11}),
    ("long-line", 0, r"Rank 0 on truth-0 failed with exit code 9", {"exitCode": 9}),
    ("bad-utf8", 3, r"Rank 3 on truth-1 failed with exit code 9.* caf. red", {"exitCode": 9}),
    ("deaf", 1, r"Rank 1 on truth-0 failed with exit code 4", {"exitCode": 4}),
]
# All ranks' wrappers see the same. tests/integration/agent tries the ends of a rank that `make test` doesn't try here.
IN_SHORT = [("direct", *behaviour) for behaviour in BEHAVIOURS if behaviour[0] in {"raise-and-upload", "deaf"}]
ALL = [(launcher, *behaviour) for launcher in ("direct", "torchrun") for behaviour in BEHAVIOURS]


def workload(behaviour: str, root_cause: int) -> tuple[str, ...]:
    return (sys.executable, WORKLOAD, behaviour, "--root-cause", str(root_cause))


@pytest.mark.parametrize(
    ("launcher", "behaviour", "root_cause", "sentence", "detail"),
    [pytest.param(*row, marks=[] if row in IN_SHORT else [pytest.mark.long]) for row in ALL],
)
def test_the_rank_that_failed_first_is_named(
    launcher: str, behaviour: str, root_cause: int, sentence: str, detail: dict[str, int], tmp_path: pathlib.Path
) -> None:
    truth = run(Case(launcher, workload(behaviour, root_cause)), tmp_path)

    assert re.search(sentence, truth.message), truth.message
    assert truth.exit_code == 1
    assert truth.status["phase"] == "Failed"
    assert truth.ranks("Failed") == str(root_cause)
    assert detail.items() <= truth.detail(root_cause).items()
    assert truth.status["ranks"]["details"][0]["rank"] == root_cause
    assert len(truth.message) < 1024
    assert truth.left == ()


# Each of the six ranks imports torch, which takes seconds.
@pytest.mark.long
@pytest.mark.parametrize("launcher", ["direct", "torchrun"])
def test_ranks_in_all_reduce_are_not_blamed_for_one_that_left(launcher: str, tmp_path: pathlib.Path) -> None:
    command = (sys.executable, TORCH_WORKLOAD, "os-exit", "--root-cause", "4")

    truth = run(Case(launcher, command, nodes=3), tmp_path)

    assert re.search(r"Rank 4 on truth-2 failed with exit code 3 at step 3", truth.message), truth.message
    assert "all_reduce" in truth.message
    assert truth.ranks("Failed") == "4"
    assert truth.ranks("Stopped") == "0-3,5"
    assert truth.left == ()


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_rank_that_ends_early_is_named_beside_the_one_that_failed(launcher: str, tmp_path: pathlib.Path) -> None:
    truth = run(Case(launcher, workload("exit-0-early", 1)), tmp_path)

    assert re.search(r"[Rr]ank 1 on truth-0 ended early with exit code 0", truth.message), truth.message
    assert "Connection closed by peer" in truth.message or "ConnectionResetError" in truth.message
    assert truth.ranks("Succeeded") == "1"
    assert truth.status["phase"] == "Failed"
    assert truth.left == ()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            ("bash", "-c", f"{sys.executable} -m torch.distributed.run --nproc-per-node=1 {{script}}"),
            marks=pytest.mark.long,
            id="torchrun",
        ),
        pytest.param(("bash", "-c", f"RANK=$((NODE_RANK * 2)) LOCAL_RANK=0 {sys.executable} {{script}}"), id="direct"),
    ],
)
def test_fewer_ranks_than_asked_for_is_never_success(command: tuple[str, ...], tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('all by myself')\n")

    truth = run(Case("perNode", tuple(word.format(script=script) for word in command)), tmp_path)

    assert truth.failed_reason == "WorldSizeMismatch"
    assert re.search(r"4 ranks .*2 nodes x 2.*\b2\b", truth.message), truth.message
    assert truth.exit_code == 1
    assert truth.left == ()


# tests/integration/agent has perNode.
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_command_that_does_not_exist(launcher: str, tmp_path: pathlib.Path) -> None:
    truth = run(Case(launcher, ("no-such-program", "train.py")), tmp_path)

    assert "no-such-program" in truth.message
    assert truth.failed_reason == "CommandNotFound"
    assert truth.left == ()


# Else muster could have stopped the last ranks before they came to their error.
TOGETHER = """
import os, pathlib, time
folder = pathlib.Path(__file__).parent
(folder / ("begun-" + os.environ["RANK"])).touch()
while len(list(folder.glob("begun-*"))) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_same_import_error_on_all_ranks_is_one_message(launcher: str, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TOGETHER + "import no_such_module\n")

    truth = run(Case(launcher, (sys.executable, str(script)), nodes=3), tmp_path)

    assert truth.message.count("No module named 'no_such_module'") == 1
    assert re.search(r"\d ranks failed the same way|All 6 ranks failed the same way", truth.message), truth.message
    assert truth.left == ()


def test_torchrun_that_cannot_start_is_named_itself(tmp_path: pathlib.Path) -> None:
    bare = shutil.which("python3", path="/usr/bin:/bin")
    assert bare, "this test needs a python3 without torch in /usr/bin"

    truth = run(Case("torchrun", (bare, "train.py")), tmp_path)

    assert "No module named" in truth.message
    assert "torch" in truth.message
    assert truth.left == ()
