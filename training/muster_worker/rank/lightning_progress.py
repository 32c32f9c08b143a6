"""A callback that reports the progress of Lightning's Trainer.

Lightning adds the callbacks of all installed packages with an entry point (lightning.ai, "Entry Points") to each
Trainer. The agent's archive (`muster.render.agent_archive`), which is on the module path of a rank, has such entry
points. So only a rank that creates a Trainer imports this module.
"""

from __future__ import annotations

import math
import sys

from muster_worker.rank import user_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional


def create_for_lightning() -> List[Any]:
    """Return the callback for the package `lightning`; nothing in a process that isn't a rank."""
    return _create_callbacks("lightning.pytorch")


def create_for_pytorch_lightning() -> List[Any]:
    """Return the callback for the package `pytorch_lightning`; nothing in a process that isn't a rank."""
    return _create_callbacks("pytorch_lightning")


def _create_callbacks(package: str) -> List[Any]:
    base = getattr(sys.modules.get(package), "Callback", None)  # the caller's package
    if base is None or not user_report.is_rank():
        return []
    return [type("MusterProgress", (base,), {**_METHODS, "__module__": __name__})()]


def _on_train_start(callback: Any, trainer: Any, module: Any) -> None:
    """Lightning calls this when the training begins."""
    callback.reported_step = None
    callback.total_steps = _find_total_steps(trainer) if module.automatic_optimization else None


def _on_train_batch_end(callback: Any, trainer: Any, *_arguments: Any) -> None:
    """Lightning calls this after each batch."""
    # If the script reports its own step, it knows better.
    if callback.total_steps is None or user_report.get_step() not in (None, callback.reported_step):
        return
    try:
        step = trainer.global_step
        user_report.report(step=step, total_steps=callback.total_steps)
    except Exception:  # noqa: BLE001 - the training must continue, whatever the script has made of its trainer
        callback.total_steps = None
        return
    callback.reported_step = step


_METHODS = {
    "reported_step": None,
    "total_steps": None,
    "on_train_start": _on_train_start,
    "on_train_batch_end": _on_train_batch_end,
}


def _find_total_steps(trainer: Any) -> Optional[int]:
    """Return the number of steps that the trainer expects; None if there is no limit."""
    try:
        total = float(trainer.estimated_stepping_batches)
    except Exception:  # noqa: BLE001 - the training must continue, whatever Lightning raises
        return None
    return int(total) if math.isfinite(total) and total >= 1 else None
