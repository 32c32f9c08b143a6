"""Counts training steps inside a rank, with torch's hook after each optimizer step.

A training step is a *round*, in which each optimizer steps at most once. A new round begins when an optimizer steps a
second time. With one optimizer each of its steps is a round. If a generator and a discriminator step in turn, one step
of both is a round. If the discriminator steps five times per generator step, there are five rounds. If a later phase of
the training creates a new optimizer, the count continues. Two kinds of steps don't count: steps that the AMP gradient
scaler skips, and the evaluations within an LBFGS step.
"""

from __future__ import annotations

import sys
from time import monotonic

from muster_worker.rank import progress_file as layout
from muster_worker.rank.busy_time import BusyTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Callable, Optional, Sequence, Set

    from muster_worker.rank.progress_file import Writer

OPTIMIZER_MODULE = "torch.optim.optimizer"


class StepCounter:
    """torch calls this after each optimizer step. It makes no system call and takes about a microsecond."""

    def __init__(self, writer: Writer, at_first_step: Callable[[], None]) -> None:
        self._words = writer.words
        self._times = writer.times
        self._at_first_step = at_first_step
        self._busy_time = BusyTime(writer)
        self._round: Set[int] = set()  # id() of each optimizer that has stepped in this round

    def __call__(self, optimizer: object, _arguments: object, _keywords: object) -> None:
        at = monotonic()
        if not self._round:
            self._times[layout.WORD_FIRST_STEPPED_AT] = at
            self._at_first_step()
        optimizer_id = id(optimizer)
        if optimizer_id in self._round or not self._round:
            self._round = {optimizer_id}
            self._words[layout.WORD_STEPS] += 1
            self._busy_time.end_step(optimizer, at)
        else:
            self._round.add(optimizer_id)
        self._times[layout.WORD_STEPPED_AT] = at

    def stop(self) -> None:
        """Stop writing to the file: this process is a forked child of the rank."""
        self._busy_time.stop()
        discarded = memoryview(bytearray(layout.SIZE))
        self._words, self._times = discarded.cast("Q"), discarded.cast("d")


class _Finder:
    """A meta path finder that registers the counter when torch's optimizers are imported."""

    def __init__(self, writer: Writer, step_counter: StepCounter) -> None:
        self._writer = writer
        self._counter = step_counter

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
            self.register(module)

        try:
            loader.__dict__["exec_module"] = exec_module
        except AttributeError:  # a loader without __dict__: no step count
            return

    def register(self, module: ModuleType) -> None:
        """Add the counter to the optimizers of torch."""
        self._writer.set_flag(layout.FLAG_TORCH)
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is None:
            return
        try:
            register(self._counter)
        except Exception:  # noqa: BLE001 - an unknown torch must not stop the training
            return
        self._writer.set_flag(layout.FLAG_COUNTING)


def install(writer: Writer, at_first_step: Callable[[], None]) -> StepCounter:
    """Count steps as soon as torch is imported. Call `at_first_step` after the first step."""
    step_counter = StepCounter(writer, at_first_step)
    finder = _Finder(writer, step_counter)
    optimizer_module = sys.modules.get(OPTIMIZER_MODULE)
    if optimizer_module is not None:  # the fork server has imported it
        finder.register(optimizer_module)
    # Keep the finder: importlib.reload executes the module again.
    sys.meta_path.insert(0, finder)
    return step_counter
