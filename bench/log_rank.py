"""Measures the cost of reports for a rank on SageMaker: start time, output, memory. Prints one JSON line.

    .venv/bin/python bench/log_rank.py [--starts 20] [--megabytes 64]

It starts ranks as SageMaker's toolkit does: one that does nothing, and one that prints lines of 100 bytes. It starts
each in turns with and without muster's entry point. Times are CPU times, so other load does not change them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from muster.render.sagemaker.rank_reports import make_report_files

RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "SM_CURRENT_HOST": "algo-1"}

OUTPUT_SCRIPT = "import sys\nline = 'x' * 99 + '\\n'\nfor _ in range({count}): sys.stdout.write(line)\n"

WRAPPER_BYTES = """
import os, time
time.sleep(0.5)
fields = open(f"/proc/{os.getppid()}/status").read().split("VmRSS:")[1].split()
open("wrapper", "w").write(str(int(fields[0]) * 1024))
"""


def main(arguments: Sequence[str]) -> int:
    """Measure and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--megabytes", type=int, default=64)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        plain_start, reporting_start = _measure_starts(folder, options.starts)
        plain, relayed = _measure_output(folder, options.megabytes)
        wrapper = _measure_wrapper_bytes(folder)
    result = {
        "bench": "log_rank",
        "start_ms": round(plain_start * 1000, 1),
        "start_reporting_ms": round(reporting_start * 1000, 1),
        "output_ms_per_mb": round(plain * 1000 / options.megabytes, 2),
        "output_reporting_ms_per_mb": round(relayed * 1000 / options.megabytes, 2),
        "wrapper_mb": round(wrapper / 2**20, 1),
    }
    print(json.dumps(result))
    return 0


def _measure_starts(folder: Path, count: int) -> tuple[float, float]:
    """Return the median CPU times of a rank that exits at once, without and with reports."""
    _write(folder, "")
    seconds: dict[str, list[float]] = {"train.py": [], "muster_entry.py": []}
    for _ in range(count):
        for program, measured in seconds.items():
            measured.append(_run(folder, program))
    return statistics.median(seconds["train.py"]), statistics.median(seconds["muster_entry.py"])


def _measure_output(folder: Path, megabytes: int) -> tuple[float, float]:
    """Return the CPU seconds for this much output, without and with reports: the minimum of three runs."""
    _write(folder, OUTPUT_SCRIPT.format(count=megabytes * 10_000))
    return min(_run(folder, "train.py") for _ in range(3)), min(_run(folder, "muster_entry.py") for _ in range(3))


def _measure_wrapper_bytes(folder: Path) -> int:
    _write(folder, WRAPPER_BYTES)
    _run(folder, "muster_entry.py")
    return int((folder / "wrapper").read_text())


def _write(folder: Path, script: str) -> None:
    for name, content in {**make_report_files("train.py"), "train.py": script.encode()}.items():
        (folder / name).write_bytes(content)


def _run(folder: Path, program: str) -> float:
    started = _measure_cpu_seconds()
    with subprocess.Popen(
        [sys.executable, program], cwd=folder, env={**os.environ, **RANK}, stdout=subprocess.PIPE
    ) as process:
        if process.stdout is None:
            raise AssertionError("started with its output as a pipe")
        while process.stdout.read(1 << 20):
            pass
    return _measure_cpu_seconds() - started


def _measure_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
