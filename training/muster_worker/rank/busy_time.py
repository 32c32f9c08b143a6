"""Measures the busy time of a rank's steps: the time in which the rank does not wait for other ranks.

In synchronous training a step takes equally long on all ranks, because each waits for the slowest rank in a collective.
Only the busy time shows which rank is the slowest.

On a CPU the busy time of a step is its wall-clock time without the time that the optimizer's thread waits for
collectives. The thread waits in `Work.wait`, which the functions of torch.distributed call. It also waits after a
backward pass, for the buckets of DistributedDataParallel. On a CUDA device the host doesn't wait, so `device_time`
measures there.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from time import monotonic

from muster_worker.rank import progress_file as layout
from muster_worker.rank.device_time import DeviceTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional, Set

    from muster_worker.rank.progress_file import Writer

BLOCK_SECONDS = 1.0
"""The mean of the steps in this time is one measurement. A longer step is a measurement of its own."""

MAX_OPTIMIZERS = 8
"""The maximum number of optimizers with a hook, because a script may create new optimizers repeatedly."""


class BusyTime:
    """Measures this process. `Counter` calls `end_step` at the end of each step. No error reaches the script."""

    def __init__(self, writer: Writer) -> None:
        self._words = writer.words
        self._times = writer.times
        self._optimizers: Set[int] = set()  # id() of the optimizers with a hook
        self._thread = 0  # the thread that completed the last step
        self._stepped_at = 0.0
        self._waited_seconds = 0.0  # seconds of waiting since the last step
        self._is_in_backward = False
        self._backward_ended_at = 0.0
        self._waited_before_callbacks = 0.0  # `_waited_seconds` when the backward pass ended
        self._busy_seconds = 0.0  # busy seconds of the steps in this block
        self._steps = 0
        self._block_ends_at = 0.0
        self._has_patched_wait = False
        self._device: Optional[DeviceTime] = None
        self._is_disabled = False

    def end_step(self, optimizer: Any, at: float) -> None:
        """Add the step that ends at `at` (monotonic seconds)."""
        if self._is_disabled:
            return
        try:
            if id(optimizer) not in self._optimizers:
                self._add_hook(optimizer)
            self._add_step(at)
            if at >= self._block_ends_at:
                self._end_block(at)
        except Exception:  # noqa: BLE001 - an unknown torch must not stop the training
            self._is_disabled = True

    def stop(self) -> None:
        """Stop writing to the file: this process is a forked child of the rank."""
        self._is_disabled = True

    def _add_step(self, at: float) -> None:
        if self._device is not None:
            busy_seconds, steps = self._device.end_step()
            self._busy_seconds += busy_seconds
            self._steps += steps
        elif self._thread:
            self._busy_seconds += max(0.0, at - self._stepped_at - self._waited_seconds)
            self._steps += 1
        # After an error in a backward pass its callbacks do not run.
        self._thread, self._stepped_at, self._waited_seconds, self._is_in_backward = get_ident(), at, 0.0, False

    def _end_block(self, at: float) -> None:
        """Write a measurement, but not of the steps before the first block: they warm up."""
        self._patch_wait()
        if self._block_ends_at and self._steps:
            count = self._words[layout.WORD_BUSY_COUNT]
            self._times[layout.WORD_BUSY_TIMES + count % layout.BUSY_TIMES] = self._busy_seconds / self._steps
            self._words[layout.WORD_BUSY_COUNT] = count + 1
        self._block_ends_at = at + BLOCK_SECONDS
        self._busy_seconds, self._steps = 0.0, 0

    def _add_hook(self, optimizer: Any) -> None:
        """Observe the backward passes of the optimizer's parameters, with a hook on one parameter."""
        if len(self._optimizers) >= MAX_OPTIMIZERS:
            return
        self._optimizers.add(id(optimizer))
        parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
        for parameter in parameters:
            if parameter.grad is not None:
                if parameter.is_cuda and self._device is None:
                    self._device = _make_device_time()
                parameter.register_post_accumulate_grad_hook(self._on_gradient)
                return

    def _on_gradient(self, _parameter: object) -> None:
        """torch calls this in a backward pass."""
        if not (self._is_in_backward or self._is_disabled):
            self._is_in_backward = self._queue_callback(self._end_backward)

    def _end_backward(self) -> None:
        """torch calls this at the end of a backward pass, before DistributedDataParallel waits for its buckets."""
        self._backward_ended_at, self._waited_before_callbacks = monotonic(), self._waited_seconds
        try:
            if self._device is not None:
                self._device.end_segment()
        except Exception:  # noqa: BLE001 - as above
            self._is_disabled = True
        self._queue_callback(self._end_callbacks)

    def _end_callbacks(self) -> None:
        """torch calls this after all other callbacks of the backward pass."""
        self._is_in_backward = False
        # The callbacks may have called Work.wait, too.
        self._waited_seconds = self._waited_before_callbacks + monotonic() - self._backward_ended_at
        try:
            if self._device is not None:
                self._device.begin_segment()
        except Exception:  # noqa: BLE001 - as above
            self._is_disabled = True

    def _queue_callback(self, callback: Any) -> bool:
        """Have torch call `callback` at the end of this backward pass. Returns whether that is possible."""
        try:
            # torch has no public name for the engine. FullyShardedDataParallel uses it in the same way.
            engine = sys.modules["torch"].autograd.Variable._execution_engine  # noqa: SLF001
            engine.queue_callback(callback)
        except Exception:  # noqa: BLE001 - as above
            self._is_disabled = True
        return not self._is_disabled

    def _patch_wait(self) -> None:
        """Measure the calls of `Work.wait`, once the script has imported torch.distributed."""
        distributed = sys.modules.get("torch.distributed")
        if self._has_patched_wait or distributed is None:
            return
        self._has_patched_wait = True
        work = getattr(distributed, "Work", None)
        if work is None:  # a torch without collectives
            return
        wait = work.wait

        def measured_wait(*arguments: Any, **keywords: Any) -> Any:
            began_at = monotonic()
            try:
                return wait(*arguments, **keywords)
            finally:
                # Ignore other threads: this thread works while they wait.
                if get_ident() == self._thread:
                    self._waited_seconds += monotonic() - began_at

        measured_wait.__name__, measured_wait.__doc__ = "wait", wait.__doc__
        work.wait = measured_wait


def _make_device_time() -> DeviceTime:
    cuda = sys.modules["torch"].cuda
    return DeviceTime(lambda: cuda.Event(enable_timing=True), cuda.is_current_stream_capturing)
