import asyncio
import subprocess
import sys
import threading
import time

import pytest

from muster.clients.aws.threads import MAX_THREADS, ThreadPool

STUCK = """
import asyncio, threading
from muster.clients.aws.threads import ThreadPool

async def main():
    threads = ThreadPool()
    task = asyncio.create_task(threads.run(threading.Event().wait))
    await asyncio.sleep(0.1)
    task.cancel()
    threads.close()

asyncio.run(main())
print("done")
"""


async def test_results_and_errors_come_back() -> None:
    threads = ThreadPool()
    assert await threads.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0)
    threads.close()


async def test_no_more_run_at_once_than_allowed_and_all_are_served() -> None:
    threads = ThreadPool()
    lock, running, most = threading.Lock(), 0, 0
    is_full = threading.Event()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == MAX_THREADS:
                is_full.set()
        is_full.wait(10)
        with lock:
            running -= 1

    await asyncio.gather(*(threads.run(work) for _ in range(3 * MAX_THREADS)))
    threads.close()
    assert most == MAX_THREADS


async def test_one_after_the_other_takes_one_thread() -> None:
    threads = ThreadPool()
    names = {await threads.run(lambda: threading.current_thread().name) for _ in range(200)}
    threads.close()
    assert len(names) == 1


async def test_threads_end_when_they_are_no_longer_needed() -> None:
    threads = ThreadPool()
    thread = await threads.run(threading.current_thread)
    threads.close()
    await asyncio.to_thread(thread.join, 10)
    assert not thread.is_alive()


def test_a_process_does_not_wait_for_a_service_that_is_silent() -> None:
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "done\n"
    assert time.monotonic() - began < 50
