"""Run many blocking steps concurrently in a few threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from muster.storage.s3.bucket import CONNECTIONS


def run_concurrently(steps: Iterable[Callable[[], None]]) -> None:
    """Run all steps. After an exception, start no more steps, wait for running ones, and raise it."""
    with ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="s3") as pool:
        under_way: set[Future[None]] = set()
        try:
            for step in steps:
                under_way.add(pool.submit(step))
                # submit step by step: there may be millions
                if len(under_way) >= 2 * CONNECTIONS:
                    under_way = _wait_for_some(under_way)
            while under_way:
                under_way = _wait_for_some(under_way)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _wait_for_some(under_way: set[Future[None]]) -> set[Future[None]]:
    finished, running = wait(under_way, return_when=FIRST_COMPLETED)
    for future in finished:
        future.result()
    return running
