"""Starts to count a rank's steps when its program imports torch's optimizers.

The modules that count are imported only then. Many ranks start at once after a failure, and each import delays them.
"""

from __future__ import annotations

import os
import sys

from muster_worker.rank import progress_file as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Optional, Sequence

    from muster_worker.rank.optimizer_steps import StepCounter
    from muster_worker.rank.progress_file import Writer

OPTIMIZER_MODULE = "torch.optim.optimizer"


class _Finder:
    """A meta path finder that adds the counter to torch's optimizers when they are imported."""

    def __init__(self, writer: Writer, progress_path: str) -> None:
        self._writer = writer
        self._path = progress_path
        self._counter: Optional[StepCounter] = None
        self._is_stopped = False

    def stop(self) -> None:
        """Count nothing: this process is a forked child of the rank."""
        self._is_stopped = True

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if name != OPTIMIZER_MODULE:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    self._extend_loader(spec)
                    return spec
        return None

    def _extend_loader(self, spec: ModuleSpec) -> None:
        # Keep the loader, and extend only its next call of exec_module.
        loader = spec.loader
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            loader.__dict__.pop("exec_module", None)
            execute(module)
            self.add_counter(module)

        try:
            loader.__dict__["exec_module"] = exec_module
        except AttributeError:  # a loader without __dict__: no step count
            return

    def add_counter(self, module: ModuleType) -> None:
        """Count the steps of torch's optimizers."""
        if self._is_stopped:
            return
        self._writer.set_flag(layout.FLAG_TORCH)
        try:
            from muster_worker.rank import optimizer_steps

            if self._counter is None:  # importlib.reload executes the module again
                self._counter = optimizer_steps.start(self._writer, self._path)
            optimizer_steps.add_counter(self._counter, self._writer, module)
        except Exception:  # noqa: BLE001 - an unknown torch must not stop the training
            return


def watch(writer: Writer, progress_path: str) -> None:
    """Count steps as soon as torch is imported, in the process of the rank with this progress file."""
    finder = _Finder(writer, progress_path)
    os.register_at_fork(after_in_child=finder.stop)
    optimizer_module = sys.modules.get(OPTIMIZER_MODULE)
    if optimizer_module is not None:  # the fork server has imported it
        finder.add_counter(optimizer_module)
    # Keep the finder: importlib.reload executes the module again.
    sys.meta_path.insert(0, finder)
