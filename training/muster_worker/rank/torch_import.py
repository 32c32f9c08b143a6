"""Extends torch when a rank's program imports it: counts its optimizers' steps, and records errors before teardown.

The modules that do so are imported only then. Many ranks start at once after a failure, and each import delays them.
"""

from __future__ import annotations

import os
import sys

from muster_worker.rank import progress_file as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Callable, Dict, Optional, Sequence

    from muster_worker.rank.optimizer_steps import StepCounter
    from muster_worker.rank.progress_file import Writer

OPTIMIZER_MODULE = "torch.optim.optimizer"
PROCESS_GROUP_MODULE = "torch.distributed.distributed_c10d"


class _Finder:
    """A meta path finder that extends torch's modules when they are imported."""

    def __init__(self, writer: Writer, progress_path: str) -> None:
        self._writer = writer
        self._path = progress_path
        self._counter: Optional[StepCounter] = None
        self._is_stopped = False
        self._extensions: Dict[str, Callable[[ModuleType], None]] = {
            OPTIMIZER_MODULE: self._add_counter,
            PROCESS_GROUP_MODULE: self._record_errors,
        }

    def stop(self) -> None:
        """Extend nothing: this process is a forked child of the rank."""
        self._is_stopped = True

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if name not in self._extensions:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    self._extend_loader(spec)
                    return spec
        return None

    def extend_imported(self) -> None:
        """Extend the modules that the fork server has imported."""
        for name in self._extensions:
            module = sys.modules.get(name)
            if module is not None:
                self._extend(module)

    def _extend_loader(self, spec: ModuleSpec) -> None:
        # Keep the loader, and extend only its next call of exec_module.
        loader = spec.loader
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            loader.__dict__.pop("exec_module", None)
            execute(module)
            self._extend(module)

        try:
            loader.__dict__["exec_module"] = exec_module
        except AttributeError:  # a loader without __dict__: no step count
            return

    def _extend(self, module: ModuleType) -> None:
        if self._is_stopped:
            return
        try:
            self._extensions[module.__name__](module)
        except Exception:  # noqa: BLE001 - an unknown torch must not stop the training
            return

    def _add_counter(self, module: ModuleType) -> None:
        self._writer.set_flag(layout.FLAG_TORCH)
        from muster_worker.rank import optimizer_steps

        if self._counter is None:  # importlib.reload executes the module again
            self._counter = optimizer_steps.start(self._writer, self._path)
        optimizer_steps.add_counter(self._counter, self._writer, module)

    def _record_errors(self, module: ModuleType) -> None:
        from muster_worker.rank import raised_error

        raised_error.watch_teardown(self._writer, module)


def watch(writer: Writer, progress_path: str) -> None:
    """Extend torch as soon as it is imported, in the process of the rank with this progress file."""
    finder = _Finder(writer, progress_path)
    os.register_at_fork(after_in_child=finder.stop)
    finder.extend_imported()
    # Keep the finder: importlib.reload executes the module again.
    sys.meta_path.insert(0, finder)
