"""Many jobs at once: the operator's resources, and the rate of status writes."""

import contextlib
import itertools
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from cluster import audit, places
from cluster.held_job import JOB, held_job, steps
from cluster.helm import Helm
from cluster.installation import Installation, installed
from cluster.installed.awaited import until
from cluster.installed.footprint import footprint, started_at
from cluster.reasons import machine
from cluster.say import say
from cluster.shared import Kubectl, SharedCluster
from muster.api.status.reader import read_status
from muster.api.status.status import Status
from muster.core.status.significant_change import is_significant_change

pytestmark = pytest.mark.long

JOBS = 20
IDLE_SECONDS = 10.0
BUSY_SECONDS = 20.0
# Two nodes that share two cores start twenty Pythons.
START_SECONDS = 240.0
PROGRESS_SECONDS = 2.0


@pytest.mark.timeout(600)
def test_twenty_jobs_cost_little_and_their_progress_is_written_every_two_seconds(
    shared_cluster: SharedCluster, kubectl: Kubectl, helm: Helm, namespace: str
) -> None:
    here = f"--namespace={namespace}"
    names = [f"job-{number}" for number in range(JOBS)]
    with installed(shared_cluster, kubectl, helm, {"namespaces": [namespace]}) as release:
        processes = leaders_processes(release)
        say(f"from the container's start to leading: {acquired_at(release) - started_at(processes[0]):.1f} s")
        say(f"idle: {footprint(processes, IDLE_SECONDS)}")
        kubectl.apply(held_job(names[0], namespace, 1, 1))
        until(lambda: steps(kubectl, namespace, names[0]), START_SECONDS)
        say(f"1 job: {footprint(processes, IDLE_SECONDS)}")
        kubectl.apply(*(held_job(name, namespace, 1, 1) for name in names[1:]))
        step = "--output=jsonpath={range .items[*]}{.status.progress.step}{' '}{end}"
        until(lambda: len(kubectl("get", JOB, here, step).split()) == JOBS, START_SECONDS)
        with restless(kubectl, namespace) as told:
            began = time.time()
            busy = footprint(processes, BUSY_SECONDS)
            ended = time.time()
        say(f"{JOBS} jobs: {busy}")
        assert processes == leaders_processes(release)
        assert busy.memory * 2**20 < requested_memory(release)
        writes = status_writes(namespace, began, ended)
    assert set(writes) == set(names)
    number = sum(map(len, writes.values()))
    # State changes were reported at once, also those of jobs with late progress.
    quiet = [times for name, times in writes.items() if name not in told]
    gaps = [later - earlier for times in quiet for earlier, later in itertools.pairwise(times)]
    say(f"{number} writes; the least time between two of {len(quiet)} jobs without news: {min(gaps):.2f} s")
    assert min(gaps) >= PROGRESS_SECONDS
    # Progress is written nearly at its highest rate.
    assert all(len(times) > BUSY_SECONDS / PROGRESS_SECONDS / 2 for times in quiet)


@contextlib.contextmanager
def restless(kubectl: Kubectl, namespace: str) -> Iterator[set[str]]:
    """Yield the names of jobs whose progress changes all the time; they complete at the end."""
    result: set[str] = set()
    line = "--output=jsonpath={.metadata.name} {.status}{'\\n'}"
    with (
        kubectl.begin("get", JOB, f"--namespace={namespace}", "--watch", line) as watch,
        ThreadPoolExecutor(1) as reader,
    ):
        assert watch.stdout is not None
        # The job has started.
        first = watch.stdout.readline()
        rest = reader.submit(watch.stdout.read)
        yield result
        watch.terminate()
        said = first + rest.result()
    by_key: dict[str, Status] = {}
    # The last line may be incomplete.
    for each in said.split("\n")[:-1]:
        name, _, written = each.partition(" ")
        status = read_status({"status": json.loads(written)})
        if is_significant_change(by_key.setdefault(name, status), status):
            result.add(name)
        by_key[name] = status


def leaders_processes(release: Installation) -> tuple[int, ...]:
    """Return this machine's process ids of the leader's container."""
    pod = release.leader.partition("_")[0]
    result = release.kubectl("get", "pod", pod, f"--namespace={release.system}", "--output=json")
    return machine.processes(json.loads(result), "muster")


def acquired_at(release: Installation) -> float:
    """When the leader acquired the Lease, in Unix seconds."""
    path = "--output=jsonpath={.spec.acquireTime}"
    text = release.kubectl("get", "lease", "muster", f"--namespace={release.system}", path)
    return datetime.fromisoformat(text).timestamp()


def requested_memory(release: Installation) -> int:
    """Return the chart's memory request of one replica, in bytes."""
    path = "--output=jsonpath={.spec.template.spec.containers[0].resources.requests.memory}"
    text = release.kubectl("get", "deployment", "muster", f"--namespace={release.system}", path)
    match = re.fullmatch(r"(\d+)Mi", text)
    assert match, text
    return int(match[1]) * 2**20


def status_writes(namespace: str, began: float, ended: float) -> dict[str, Sequence[float]]:
    """Return the times of each job's status writes, in Unix seconds, by the API server's clock."""
    result: dict[str, list[float]] = defaultdict(list)
    for event in audit.events(places.state()):
        about: Any = event.get("objectRef") or {}
        asked = event["verb"], about.get("resource"), about.get("subresource")
        is_write = asked == ("patch", "distributedtrainingjobs", "status")
        at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        if is_write and about.get("namespace") == namespace and began <= at <= ended:
            result[about["name"]].append(at)
    return dict(result)
