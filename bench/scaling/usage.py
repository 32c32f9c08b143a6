"""Reads the usage: CPU time and memory of processes, and requests as the API server counts them."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
_CONFLICT, _TIME_OUT, _ERROR = "409", "504", "400"


@dataclass(frozen=True, order=True)
class RequestKind:
    """The labels of a request in the metrics. `resource` contains the subresource; `dry_run` is "dry-run" or ""."""

    verb: str
    resource: str
    code: str
    dry_run: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.verb, self.resource, self.dry_run, self.code)))


Requests = Counter[RequestKind]


def read_requests(metrics: str) -> Requests:
    """Parse the API server's metrics."""
    result: Requests = Counter()
    for labels, value in _SAMPLE.findall(metrics):
        label_values = dict(_LABEL.findall(labels))
        resource = "/".join(filter(None, (label_values["resource"], label_values["subresource"])))
        dry_run = "dry-run" if label_values["dry_run"] else ""
        result[RequestKind(label_values["verb"], resource, label_values["code"], dry_run)] += int(float(value))
    return result


def summarise_requests(requests: Requests, job_resource: str, pods: int) -> dict[str, object]:
    """Return the figures of a run: the requests of all clients of the API server."""
    writes = {kind: count for kind, count in requests.items() if kind.verb in _WRITES}
    # Components send reviews of their clients' tokens and permissions from time to time.
    reported_writes = {kind: count for kind, count in writes.items() if not kind.resource.endswith("reviews")}
    return {
        "writes_per_pod": round(sum(reported_writes.values()) / pods, 2),
        "job_status_writes": sum(
            count for kind, count in writes.items() if kind.resource == f"{job_resource}/status" and not kind.dry_run
        ),
        "conflicts": _count_code(requests, _CONFLICT),
        "time_outs": _count_code(requests, _TIME_OUT),
        "by_verb_and_code": dict(sorted(_count_by_verb_and_code(requests).items())),
        "writes": {str(kind): count for kind, count in sorted(reported_writes.items())},
        "errors": {str(kind): count for kind, count in sorted(requests.items()) if kind.code >= _ERROR},
    }


def _count_code(requests: Requests, code: str) -> int:
    return sum(count for kind, count in requests.items() if kind.code == code)


def _count_by_verb_and_code(requests: Requests) -> Counter[str]:
    totals: Counter[str] = Counter()
    for kind, count in requests.items():
        totals[f"{kind.verb} {kind.code}"] += count
    return totals


def measure_cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time that processes have used."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS


def measure_machine_cpu_seconds() -> float:
    """Return the CPU time that all processes of the machine have used."""
    fields = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()
    user, nice, system, _, _, irq, softirq = map(int, fields[1:8])
    return (user + nice + system + irq + softirq) / _TICKS


def measure_peak_mib(pids: Iterable[int]) -> float:
    """Return the sum of the processes' peak resident memory."""
    return _sum_memory(pids, "VmHWM:")


def measure_resident_mib(pids: Iterable[int]) -> float:
    """Return the sum of the processes' resident memory."""
    return _sum_memory(pids, "VmRSS:")


def _sum_memory(pids: Iterable[int], field: str) -> float:
    total = 0
    for pid in pids:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        total += int(status.partition(field)[2].split()[0])
    return round(total / 1024, 1)


def compute_differences(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the growth of each value."""
    return {name: round(value - before[name], 2) for name, value in after.items()}
