"""Counts the training's steps inside a rank: torch tells us after every optimizer's step.

A step is a *round*: it begins when an optimizer steps that has already stepped in the round before. One optimizer: each
of its steps. A generator and a discriminator in turn: one step for both. Five discriminator steps to one generator
step: five. A second phase with a new optimizer goes on counting. A step that the AMP gradient scaler skips isn't one,
nor are the evaluations inside one LBFGS step.
"""

from __future__ import annotations

import sys
from time import monotonic

from muster_worker.rank import progress_file as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Optional, Sequence, Set

    from muster_worker.rank.progress_file import Writer

OPTIMIZER_MODULE = "torch.optim.optimizer"


class Counter:
    """torch calls it after each optimizer's step. No system call, no exception, under a microsecond."""

    def __init__(self, writer: Writer) -> None:
        self._words = writer.words
        self._times = writer.times
        self._round: Set[int] = set()  # id() of the optimizers that have stepped in this round

    def __call__(self, optimizer: object, _arguments: object, _keywords: object) -> None:
        optimizer_id = id(optimizer)
        if optimizer_id in self._round or not self._round:
            self._round = {optimizer_id}
            self._words[layout.WORD_STEPS] += 1
        else:
            self._round.add(optimizer_id)
        self._times[layout.WORD_STEPPED_AT] = monotonic()

    def stop(self) -> None:
        """Leave the file alone from now on: this process is a forked child of the rank."""
        scratch = memoryview(bytearray(layout.SIZE))
        self._words, self._times = scratch.cast("Q"), scratch.cast("d")


class _Finder:
    """A meta path finder that finds nothing by itself: it waits for torch's optimizers to be imported."""

    def __init__(self, writer: Writer, counter: Counter) -> None:
        self._writer = writer
        self._counter = counter

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if name != OPTIMIZER_MODULE:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    self._follow(spec)
                    return spec
        return None

    def _follow(self, spec: ModuleSpec) -> None:
        # The loader stays the one that it is; only its next exec_module does something more.
        loader = spec.loader
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            loader.__dict__.pop("exec_module", None)
            execute(module)
            self._register(module)

        try:
            loader.__dict__["exec_module"] = exec_module
        except AttributeError:  # a loader without a dictionary: no step count then
            return

    def _register(self, module: ModuleType) -> None:
        self._writer.set_flag(layout.FLAG_TORCH)
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is None:
            return
        try:
            register(self._counter)
        except Exception:  # noqa: BLE001 - whatever a future torch does, the training goes on
            return
        self._writer.set_flag(layout.FLAG_COUNTING)


def install(writer: Writer) -> Counter:
    """Count from the moment that torch is imported, if it ever is."""
    counter = Counter(writer)
    # It stays there: importlib.reload executes the module anew.
    sys.meta_path.insert(0, _Finder(writer, counter))
    return counter
