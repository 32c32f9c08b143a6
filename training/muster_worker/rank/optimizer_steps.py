"""Counts training steps inside a rank, with torch's hook after each optimizer step.

A training step is a *round*, in which each optimizer steps at most once. A new round begins when an optimizer steps a
second time. With one optimizer each of its steps is a round. If a generator and a discriminator step in turn, one step
of both is a round. If the discriminator steps five times per generator step, there are five rounds. If a later phase of
the training creates a new optimizer, the count continues. Two kinds of steps don't count: steps that the AMP gradient
scaler skips, and the evaluations within an LBFGS step.
"""

from __future__ import annotations

import os
from time import monotonic

from muster_worker.rank import progress_file as layout
from muster_worker.rank.busy_time import BusyTime
from muster_worker.rank.collectives import CollectivesResponder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Set

    from muster_worker.rank.progress_file import Writer


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


def start(writer: Writer, progress_path: str) -> StepCounter:
    """Return the counter of this rank, whose forked children count nothing."""
    responder = CollectivesResponder(progress_path)
    step_counter = StepCounter(writer, responder.start)
    for stop in (step_counter.stop, responder.stop):
        os.register_at_fork(after_in_child=stop)
    return step_counter


def add_counter(step_counter: StepCounter, writer: Writer, module: ModuleType) -> None:
    """Add the counter to the optimizers of torch. `module` is `torch.optim.optimizer`."""
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is None:
        return
    register(step_counter)
    writer.set_flag(layout.FLAG_COUNTING)
