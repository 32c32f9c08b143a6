"""The callback for Lightning's Trainer, with objects that have what the callback uses of Lightning."""

import math
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from muster_worker.rank import lightning_progress, progress_file, user_report
from muster_worker.rank_group import progress


class Callback:
    """Lightning's base class."""


@dataclass
class Trainer:
    global_step: int = 0
    total: float = 100

    @property
    def estimated_stepping_batches(self) -> float:
        if self.total < 0:
            raise RuntimeError("no data loader")
        return self.total


@dataclass
class Module:
    automatic_optimization: bool = True


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the progress file of this process, which is a rank that has imported Lightning."""
    package = types.ModuleType("lightning.pytorch")
    package.__dict__["Callback"] = Callback
    monkeypatch.setitem(sys.modules, "lightning.pytorch", package)
    name = str(tmp_path / "progress")
    progress_file.create(name)
    writer = progress_file.claim(name)
    assert writer is not None
    user_report.start(writer, name)
    yield name
    user_report.stop()


def train(trainer: Trainer, module: Module, steps: int) -> None:
    (callback,) = lightning_progress.create_for_lightning()
    assert isinstance(callback, Callback)
    used: Any = callback
    used.on_train_start(trainer, module)
    for _ in range(steps):
        trainer.global_step += 1
        used.on_train_batch_end(trainer, module, None, None, 0)


def read(path: str) -> tuple[int | None, int | None]:
    current = progress.read(path)
    return (current.reported_step, current.total_steps)


def test_it_reports_the_trainer_s_steps(path: str) -> None:
    train(Trainer(global_step=40), Module(), 3)
    assert read(path) == (43, 100)


@pytest.mark.parametrize("total", [math.inf, math.nan, 0, -1, sys.maxsize])
def test_without_a_total_it_reports_nothing(path: str, total: float) -> None:
    train(Trainer(total=total), Module(), 3)
    assert read(path) == (None, None)


def test_with_manual_optimization_it_reports_nothing(path: str) -> None:
    train(Trainer(), Module(automatic_optimization=False), 3)
    assert read(path) == (None, None)


def test_the_script_s_own_step_comes_first(path: str) -> None:
    user_report.report(step=7000)
    train(Trainer(), Module(), 3)
    assert read(path) == (7000, None)


def test_a_process_that_is_no_rank_gets_no_callback() -> None:
    assert lightning_progress.create_for_lightning() == []
    assert lightning_progress.create_for_pytorch_lightning() == []
