"""Run many blocking functions concurrently in a few threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from muster.storage.s3.bucket import CONNECTIONS


def run_concurrently(steps: Iterable[Callable[[], None]]) -> None:
    """Run all steps. After an exception, start no more steps, wait for the running steps, and raise the exception."""
    with ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="s3") as pool:
        pending: set[Future[None]] = set()
        try:
            for step in steps:
                pending.add(pool.submit(step))
                # Limit the submitted steps, because there may be millions of steps.
                if len(pending) >= 2 * CONNECTIONS:
                    pending = _wait_for_some(pending)
            while pending:
                pending = _wait_for_some(pending)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _wait_for_some(pending_futures: set[Future[None]]) -> set[Future[None]]:
    finished_futures, running_futures = wait(pending_futures, return_when=FIRST_COMPLETED)
    for future in finished_futures:
        future.result()
    return running_futures
