"""The operator's memory and processor time, by the kernel's counters."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGESIZE")
# Fields of /proc/PID/stat, counted after the program's name.
_USER_TICKS, _SYSTEM_TICKS, _STARTED_TICKS, _RESIDENT_PAGES = 11, 12, 19, 21


@dataclass(frozen=True)
class Footprint:
    """Resident memory in MiB, and the share of a processor."""

    memory: float
    processor: float

    def __str__(self) -> str:
        return f"{self.memory:.0f} MiB, {self.processor * 1000:.0f} m of a processor"


def footprint(processes: tuple[int, ...], seconds: float) -> Footprint:
    """Return the memory of processes now, and their average processor time over the next seconds."""
    before = _processor(processes)
    time.sleep(seconds)  # the share is an average over these seconds
    return Footprint(_sum(processes, _RESIDENT_PAGES) * _PAGE / 2**20, (_processor(processes) - before) / seconds)


def started_at(process: int) -> float:
    """Return the start time of a process, in Unix seconds."""
    booted_at = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted_at + _sum((process,), _STARTED_TICKS) / _TICKS


def _processor(processes: tuple[int, ...]) -> float:
    return (_sum(processes, _USER_TICKS) + _sum(processes, _SYSTEM_TICKS)) / _TICKS


def _sum(processes: tuple[int, ...], number: int) -> int:
    stats = (Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split() for each in processes)
    return sum(int(fields[number]) for fields in stats)
