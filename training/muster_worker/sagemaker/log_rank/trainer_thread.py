"""Serves Kubeflow Trainer's progress protocol to rank 0 in a thread of its wrapper, because there is no agent."""

from __future__ import annotations

import os
import selectors
import threading
import time
from typing import Dict, List, Mapping, Optional, Tuple

from muster_worker.agent.state import Event, MetricRecord
from muster_worker.agent.trainer_progress import TrainerProgress, TrainerReport, add_report
from muster_worker.rank.trainer_socket import TrainerSocket
from muster_worker.rank_group.trainer_server import TrainerServer


class TrainerThread:
    """The server and what the rank has reported."""

    def __init__(self, trainer_socket: TrainerSocket) -> None:
        self._selector = selectors.DefaultSelector()
        self._server = TrainerServer(self._selector, trainer_socket)
        self._progress: Optional[TrainerProgress] = None
        self._metrics: Dict[str, float] = {}
        self._lock = threading.Lock()
        self._is_stopping = False
        self._stop_reader, self._stop_writer = os.pipe()
        self._selector.register(self._stop_reader, selectors.EVENT_READ, self._stop)
        self._thread = threading.Thread(target=self._run, name="trainer", daemon=True)
        self._thread.start()

    def read(self) -> Tuple[Optional[TrainerProgress], Mapping[str, float]]:
        """Return the progress, and the metrics of all reports."""
        with self._lock:
            return self._progress, dict(self._metrics)

    def end(self) -> None:
        """Handle the requests that have arrived, and end the thread."""
        os.write(self._stop_writer, b".")
        self._thread.join()
        self._server.close()

    def _run(self) -> None:
        while not self._is_stopping:
            poll_at = self._server.next_poll_at
            timeout = None if poll_at is None else max(0.0, poll_at - time.monotonic())
            for key, _ in self._selector.select(timeout):
                self._apply(key.data())
            self._server.poll()

    def _stop(self) -> List[Event]:
        self._is_stopping = True
        return []

    def _apply(self, events: List[Event]) -> None:
        with self._lock:
            for event in events:
                if isinstance(event, TrainerReport):
                    self._progress = add_report(self._progress, event)
                elif isinstance(event, MetricRecord):
                    self._metrics[event.name] = event.value
