"""How long the page of `muster board` takes to show a change of a large job, and how much memory the page has.

    PYTHONPATH=tests:tools python bench/board.py [--ranks 4096 100000] [--updates 20] [--screenshots DIR]

`muster board` serves the file of a run with this many ranks, 8 a node, to Debian's Chromium. The benchmark replaces the
file again and again: `few` changes the numbers of one rank of a hundred, `all` those of every rank. An update is the
processor time of the page's main thread from the event to the painted cells: parse, apply, colour, paint, layout.
`paint` is the wall time of the page's own paint function, so other work on the machine adds to it. `shown` is the wall
time from the new file to the painted cells; the server looks at the file twice a second. Prints one JSON line.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from muster.cli.board.frame import STATES, Frame, RankColumns, RankProblem
from muster.cli.board.frame_json import encode_changes, encode_frame
from muster.distribution import get_version
from support import chromium
from support.board_page import serve_board
from support.browser import Page

PROCS_PER_NODE = 8
FAILED_RANK = 1234
SLOW_NODES = 32
KINDS = {"few": 0.01, "all": 1.0}
"""The share of the ranks that an update changes."""

AWAIT_PAINT = """new Promise(resolve => {
  const root = document.documentElement;
  const observer = new MutationObserver(() => {
    if (document.getElementById("numbers").textContent.includes("Step" + (%d).toLocaleString("en"))) {
      observer.disconnect();
      resolve(Number(root.dataset.paintMilliseconds));
    }
  });
  observer.observe(root, {attributeFilter: ["data-paint-milliseconds"]});
})"""


@dataclass
class Samples:
    """Milliseconds of each update, and the bytes of its event."""

    update: list[float] = field(default_factory=list)
    paint: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    event_bytes: list[int] = field(default_factory=list)

    def summarise(self) -> dict[str, object]:
        """Return the medians and the largest numbers."""
        times = {"update_ms": self.update, "paint_ms": self.paint, "shown_ms": self.shown}
        return {
            **{
                name: {"median": round(statistics.median(values), 1), "max": round(max(values), 1)}
                for name, values in times.items()
            },
            "event_kib": round(statistics.median(self.event_bytes) / 1024, 1),
        }


def build_frame(world: int, generator: random.Random) -> Frame:
    """Return a job that trains: one rank has failed, one node starts, and the nodes of one rack are slow."""
    states = [STATES.index("Running")] * world
    states[FAILED_RANK] = STATES.index("Failed")
    states[:PROCS_PER_NODE] = [STATES.index("Starting")] * PROCS_PER_NODE
    slow = range(world // 2, world // 2 + SLOW_NODES * PROCS_PER_NODE)
    milliseconds = [generator.gauss(720 if rank in slow else 520, 9) for rank in range(world)]
    return Frame(
        name="large",
        phase="Running",
        message=f"{world - PROCS_PER_NODE - 1:,} of {world:,} ranks run",
        elapsed_seconds=3600,
        attempt=1,
        procs_per_node=PROCS_PER_NODE,
        columns=RankColumns(
            tuple(states),
            tuple(
                generator.choice((1, 2, 2, 3)) if rank in slow else generator.choice((0, 0, 0, 1))
                for rank in range(world)
            ),
            # two significant digits, as build_frame rounds them
            tuple(round(value / 10) * 10_000 for value in milliseconds),
        ),
        step=1_000_000,
        problems=(RankProblem(FAILED_RANK, "Failed", "signal 9", "the rank was killed"),),
    )


def change(frame: Frame, share: float, generator: random.Random) -> Frame:
    """Return the frame one step later, with other numbers for this share of the ranks."""
    behind, times = list(frame.columns.steps_behind), list(frame.columns.step_microseconds)
    for rank in generator.sample(range(frame.world), int(frame.world * share)):
        behind[rank] = (behind[rank] + 1) % 5
        times[rank] = 400_000 + (times[rank] - 390_000) % 300_000
    columns = replace(frame.columns, steps_behind=tuple(behind), step_microseconds=tuple(times))
    return replace(frame, columns=columns, step=(frame.step or 0) + 1)


def write(frame: Frame, folder: Path) -> None:
    """Replace the run's file, as `muster run` does."""
    temporary = folder / "board.new"
    temporary.write_text(json.dumps(encode_frame(frame), separators=(",", ":")), encoding="utf-8")
    temporary.replace(folder / "board.json")


async def read_page_metric(page: Page, name: str) -> float:
    """Return a metric of Chromium about the page; times are in seconds."""
    metrics = (await page.call("Performance.getMetrics"))["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == name))


async def measure_updates(page: Page, frame: Frame, folder: Path, share: float, updates: int) -> tuple[Samples, Frame]:
    """Change the file `updates` times; return the samples and the last frame."""
    generator, samples = random.Random(1), Samples()  # noqa: S311 - the same changes in each run
    for _ in range(updates):
        newest = change(frame, share, generator)
        painted = asyncio.create_task(page.evaluate(AWAIT_PAINT % newest.step))
        before = await read_page_metric(page, "TaskDuration")
        samples.event_bytes.append(len(json.dumps(encode_changes(frame, newest), separators=(",", ":"))))
        write(newest, folder)
        written_at = time.monotonic()
        samples.paint.append(await painted)
        samples.shown.append((time.monotonic() - written_at) * 1000)
        # The layout and the drawing follow the paint function.
        await page.evaluate("new Promise(next => requestAnimationFrame(() => setTimeout(next, 0)))")
        samples.update.append((await read_page_metric(page, "TaskDuration") - before) * 1000)
        frame = newest
    return samples, frame


def list_descendants(pid: int) -> Iterator[int]:
    """Yield the processes that this process has started, and theirs."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            yield int(child)
            yield from list_descendants(int(child))


def read_page_memory() -> float:
    """Return the MiB of the page's process, with its share of the memory that processes share."""
    sizes = [0]
    for pid in list_descendants(os.getpid()):
        folder = Path(f"/proc/{pid}")
        if b"--type=renderer" in (folder / "cmdline").read_bytes():
            lines = (folder / "smaps_rollup").read_text().splitlines()
            sizes.append(next(int(line.split()[1]) for line in lines if line.startswith("Pss:")))
    return max(sizes) / 1024


async def measure(world: int, updates: int, screenshots: Path | None) -> dict[str, object]:
    """Open the page of a job with this many ranks, and measure it."""
    with tempfile.TemporaryDirectory() as name:
        runs, profile = Path(name, "runs"), Path(name, "profile")
        folder = runs / "large"
        folder.mkdir(parents=True)
        frame = build_frame(world, random.Random(world))  # noqa: S311 - the same ranks in each run
        write(frame, folder)
        result: dict[str, object] = {"ranks": world, "file_kib": round((folder / "board.json").stat().st_size / 1024)}
        async with serve_board(runs) as url, chromium.open_page(profile, width=1200, height=900) as page:
            await page.call("Performance.enable", timeDomain="threadTicks")
            await page.go_to(url)
            await page.await_true("document.documentElement.dataset.paintMilliseconds")
            if screenshots is not None:
                write(frame, folder)
                await save_screenshots(page, world, screenshots)
            for kind, share in KINDS.items():
                samples, frame = await measure_updates(page, frame, folder, share, updates)
                result[kind] = samples.summarise()
            await page.call("HeapProfiler.collectGarbage")
            heap = await read_page_metric(page, "JSHeapUsedSize") / 1024**2
            result["memory_mib"] = {"process": round(read_page_memory()), "js_heap": round(heap, 1)}
            if page.errors:
                raise SystemExit(f"the page has errors: {page.errors}")
        return result


async def save_screenshots(page: Page, world: int, folder: Path) -> None:
    """Save a picture of the page for each way to colour the cells."""
    # The page shows a notice while the file is old.
    await page.await_true("document.getElementById('notice').hidden")
    for mode in ("state", "skew", "time"):
        await page.evaluate(f"document.querySelector('#modes input[value={mode}]').click()")
        await page.await_true("true")
        (folder / f"board-{world}-{mode}.png").write_bytes(await page.take_screenshot())
    await page.evaluate("document.querySelector('#modes input[value=state]').click()")


async def measure_all(sizes: Sequence[int], updates: int, screenshots: Path | None) -> None:
    """Measure each size, and print the result."""
    results = [await measure(world, updates, screenshots) for world in sizes]
    settings = {"updates": updates, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    versions = {"muster": get_version(), "python": platform.python_version()}
    print(json.dumps({"benchmark": "board", "versions": versions, "settings": settings, "sizes": results}))


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[4096, 100_000], help=f"more than {FAILED_RANK} each")
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of the page")
    options = parser.parse_args()
    asyncio.run(measure_all(options.ranks, options.updates, options.screenshots))


if __name__ == "__main__":
    main()
