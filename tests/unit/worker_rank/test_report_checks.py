import json
import subprocess
import sys
from pathlib import Path

import pytest

import muster_worker
from muster_worker.rank import user_report

OUTSIDE = """
import muster_worker
from muster_worker.rank import user_report
class Tensor:
    def __float__(self):
        return 0.5
muster_worker.report(step=3, loss=0.1, tensor=Tensor(), not_a_number=float("nan"), whole=3)
"""


class Batch:
    def __float__(self) -> float:
        raise RuntimeError("a Tensor with 4 elements cannot be converted to Scalar")


def test_outside_muster_a_report_leaves_no_trace(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", OUTSIDE], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("step", "metrics", "error", "words"),
    [
        (1.5, {}, TypeError, "step: expected a whole number, found float"),
        ("3", {}, TypeError, "step: expected a whole number, found str"),
        (-1, {}, ValueError, "step: expected a whole number from 0 on, found -1"),
        (True, {}, ValueError, "step: .* found True"),
        (2**63, {}, ValueError, "step: expected"),
        (1, {"loss": "0.1"}, TypeError, "loss: expected a number, found str"),
        (1, {"loss": None}, TypeError, "loss: expected one number, found NoneType"),
        (1, {"loss": Batch()}, TypeError, "loss: expected one number, found Batch"),
        (1, {"x" * 65: 1.0}, ValueError, "at most 64 characters"),
    ],
)
def test_mistakes_are_said_outside_muster_too(
    step: int, metrics: dict[str, float], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        muster_worker.report(step, **metrics)  # type: ignore[arg-type]


@pytest.mark.parametrize(("total", "error"), [(0, ValueError), (-5, ValueError), (1.5, TypeError), (True, ValueError)])
def test_a_total_is_a_whole_number_from_1_on(total: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="total_steps: expected a whole number"):
        muster_worker.report(1, total_steps=total)


def test_there_is_nothing_else() -> None:
    with pytest.raises(AttributeError, match="nosuch"):
        _ = muster_worker.nosuch


def test_a_report_is_the_json_that_the_agent_reads() -> None:
    metrics = {'a"\\\n\u00e9\U0001f600': 1e308, "zero": -0.0, "small": 5e-324}
    document = {"step": 2**62, "first_step": 0, "total_steps": None, "advanced_at": None, "metrics": metrics}
    assert json.loads(user_report._encode((2**62, 0, None), None, metrics)) == document
