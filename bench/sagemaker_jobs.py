"""Measures muster with many SageMaker jobs at once: how late a resource shows a change, and what muster sends to AWS.

    PYTHONPATH=tests:bench:tools python bench/sagemaker_jobs.py [--jobs 1000] [--speed 5] [--until SECONDS]

The operator runs as a process, with the permissions of the chart. The API server and etcd are real. SageMaker is a
service of this process that speaks its protocol over HTTP, with the default rates of an account: it throttles what
exceeds them on average over three seconds. All jobs are applied at once, in one namespace, account and region. A
training starts and loads its data in 21 to 90 s. It ends in a random order within 2 minutes after muster has had the
time to create all jobs, so that all of them train at the same time. At AWS' rate of one creation a second 1,000 jobs
take 23 minutes. `--speed 5` divides all of these times by 5: it multiplies AWS' rates and muster's own, and divides
muster's intervals and the durations of the trainings. What does not depend on AWS, such as writing a status, takes its
usual time, so a delay takes more sweeps than at speed 1. `--until` ends the measurement early.

- `created_seconds`: from the first to the last creation, and from applying the jobs until the last one.
- `delay`: from a change at the service until a watch of this process sees it, or a later one, in the resource. A sweep
  is the interval at which muster lists the training jobs. `late` is the number of changes that took over two sweeps.
  `after_start` has the same figures without the changes of the first 2 minutes (at speed 1), in which the operator
  writes the first status of all jobs.
- `aws`: for each operation the requests, their mean in a second, and their highest number within a second, which begins
  at any request. `throttled` is the number of throttled requests.
- `operator`: CPU seconds and the highest resident memory of its two processes, from applying the jobs until the end.

Prints one JSON line.
"""

import argparse
import asyncio
import json
import math
import os
import platform
import random
import statistics
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster import interruption
from cluster.helm import Helm
from cluster.operator.operator_process import OperatorProcess, account, replicas
from cluster.programs import KUBERNETES
from cluster.shared import Kubectl
from fakes.fake_credentials import FAKE_VARIABLES
from fakes.sagemaker_service.jobs import Fields
from fakes.sagemaker_service.script import Script, Stage
from fakes.sagemaker_service.server import serving
from fakes.sagemaker_service.service import RATES, Call, NoReply, Reply, Service
from fakes.sagemaker_site.logs import TARGET, Logs
from muster.api.crd import format_crd_yaml
from muster.api.names import API_VERSION, GROUP, KIND, PLURAL, VERSION
from muster.clients.aws.quotas import QUOTAS
from muster.clients.aws.training_job_poller import LIST_SECONDS
from muster.distribution import get_version
from scaling import control_plane, run, usage
from scaling.api import Api, Request, connect
from scaling.control_plane import ControlPlane

NAMESPACE = "sagemaker"
JOBS_PATH = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{PLURAL}"
ROLE = "arn:aws:iam::111122223333:role/Training"
CREATE = "CreateTrainingJob"
END_SPREAD_SECONDS = 120.0
START_SECONDS = 120.0
POLL_SECONDS = 1.0
PROGRESS_SECONDS = 30.0
LATE_SWEEPS = 2.0

SPEED_UP = """
from muster.clients.aws import quotas, training_job_poller as poller
quotas.QUOTAS = {{
    name: quotas.Quota(quota.per_second * {speed}, quota.max_concurrent) for name, quota in quotas.QUOTAS.items()
}}
for name in ("LIST_SECONDS", "FULL_LIST_SECONDS", "DESCRIPTION_WAIT_SECONDS"):
    setattr(poller, name, getattr(poller, name) / {speed})
"""
"""A sitecustomize of the operator. AWS' quotas are fixed, so muster has no option for them."""

State = tuple[str, str]


class BenchedService(Service):
    """SageMaker, and CloudWatch Logs without any line."""

    logs = Logs(time.time)

    def handle(self, headers: Mapping[str, str], body: bytes) -> Reply | NoReply:
        """Handle one request."""
        target = headers.get("X-Amz-Target", "")
        if not target.startswith(TARGET):
            return super().handle(headers, body)
        operation, request = target.removeprefix(TARGET), json.loads(body)
        self.calls.append(Call(self.now(), operation, request, "", "", "", ""))
        headers = {"Content-Type": "application/x-amz-json-1.1"}
        return Reply(200, json.dumps(self.logs.answer(operation, request)), headers)


@dataclass
class Seen:
    """The states of each resource in the order of a watch, with their Unix times."""

    states: dict[str, list[tuple[float, State]]] = field(default_factory=dict)
    succeeded: set[str] = field(default_factory=set)

    async def watch(self, api: Api) -> None:
        """Watch the jobs until cancelled."""
        async for change in api.follow(f"{JOBS_PATH}?watch=1&timeoutSeconds=3600"):
            self.record(change["object"], time.time())

    def record(self, resource: Mapping[str, Any], now: float) -> None:
        """Record the state of a resource."""
        name, status = resource["metadata"]["name"], resource.get("status", {})
        training_job = status.get("backend", {}).get("sagemaker", {})
        state = (training_job.get("status", ""), training_job.get("secondaryStatus", ""))
        states = self.states.setdefault(name, [])
        if state[1] and (not states or states[-1][1] != state):
            states.append((now, state))
        if status.get("phase") == "Succeeded":
            self.succeeded.add(name)


def build_job(name: str) -> dict[str, Any]:
    """Return a job whose container starts by itself."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {
            "backend": "SageMaker",
            "launcher": {"perNode": {}},
            "image": "111122223333.dkr.ecr.us-west-2.amazonaws.com/train:1",
            "command": ["python", "train.py"],
            "output": {"s3": "s3://team/out"},
            "sagemaker": {"role": ROLE, "instanceType": "ml.c5.xlarge"},
        },
    }


def make_script(began: float, creation_seconds: float, speed: float) -> Callable[[Fields], Script]:
    """Plan the stages of each training job."""
    draw = random.Random(3)  # noqa: S311 - the same plan in each run

    def plan(_request: Fields) -> Script:
        starting, loading, uploading = (draw.uniform(*limits) / speed for limits in ((20, 60), (1, 30), (1, 15)))
        end = began + creation_seconds + (60.0 + draw.uniform(0.0, END_SPREAD_SECONDS)) / speed
        return (
            Stage("Starting", starting),
            Stage("Downloading", loading),
            Stage("Training", max(10.0 / speed, end - time.time() - starting - loading)),
            Stage("Uploading", uploading),
            Stage("Completed", status="Completed"),
        )

    return plan


@dataclass(frozen=True)
class Measurement:
    """What happened until all jobs had succeeded. `began` is the Unix time of the application."""

    service: Service
    seen: Seen
    began: float
    seconds: float
    cpu_seconds: float
    peak_mib: float
    requests: usage.Requests


def list_delays(measurement: Measurement, since: float, until: float) -> list[float]:
    """Return how long each change between these Unix times took from the service to the resource, so far."""
    result = []
    ended = measurement.began + measurement.seconds
    for job in measurement.service.get_jobs().by_name.values():
        states = [(stage.status, stage.secondary) for _, stage in job.course.stages]
        seen = measurement.seen.states[job.name.rsplit("-", 2)[0]]
        shown = [(at, states.index(state)) for at, state in seen if state in states]
        for index, (stage_began, _) in enumerate(job.course.stages):
            began = stage_began.timestamp()
            if since <= began <= until:
                result.append(min((at for at, position in shown if position >= index), default=ended) - began)
    return result


def count_within_a_second(times: Sequence[float]) -> int:
    """Return the highest number of these sorted times within a second."""
    return max(bisect_left(times, at + 1.0) - index for index, at in enumerate(times))


def summarise_calls(calls: Sequence[Call], seconds: float) -> dict[str, object]:
    """Return the requests by operation."""
    times: dict[str, list[float]] = {}
    for call in calls:
        times.setdefault(call.operation, []).append(call.at.timestamp())
    return {
        operation: {
            "requests": len(each),
            "per_second": round(len(each) / seconds, 2),
            "most_in_a_second": count_within_a_second(sorted(each)),
        }
        for operation, each in sorted(times.items())
    }


@contextmanager
def run_operator(cluster: ControlPlane, url: str, speed: int) -> Iterator[OperatorProcess]:
    """Run the operator with this service."""
    state = cluster.site.state
    folder = state.folder / NAMESPACE
    folder.mkdir()
    kubectl = Kubectl(state.kubeconfig)
    endpoints = dict.fromkeys(("sagemaker", "sts", "s3", "logs"), url)
    grants = {"namespaces": ["*"], "roles": [ROLE], "buckets": [{"name": "team"}]}
    config = folder / "config.yaml"
    config.write_text(
        json.dumps({"sagemaker": {"region": "us-west-2", "endpoints": endpoints}, "tenancy": [grants]}),
        encoding="utf-8",
    )
    kubeconfig = account(kubectl, Helm(state.kubeconfig), NAMESPACE, folder)
    with replicas(kubectl, kubeconfig, NAMESPACE, folder, is_forked=False) as operators:
        operators.config, operators.environment = config, FAKE_VARIABLES
        if speed > 1:
            hook = folder / "hook"
            hook.mkdir()
            (hook / "sitecustomize.py").write_text(SPEED_UP.format(speed=speed), encoding="utf-8")
            operators.environment = {**FAKE_VARIABLES, "PYTHONPATH": str(hook)}
        yield operators.start()


def make_service(speed: int) -> BenchedService:
    """Return an account with AWS' default rates, faster by `speed`."""
    service = BenchedService(lambda: datetime.now(UTC))
    service.rates = {operation: rate * speed for operation, rate in RATES.items()}
    service.forgiving_seconds = math.ceil(service.forgiving_seconds / speed)
    return service


async def measure(cluster: ControlPlane, options: argparse.Namespace) -> Measurement:
    """Apply the jobs, and wait until all have succeeded."""
    jobs, speed = options.jobs, options.speed
    service, seen = make_service(speed), Seen()
    async with connect(cluster.site.api, cluster.site.state.keys) as api:
        await api.send(Request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}))
        with ExitStack() as stack:
            url = stack.enter_context(serving(service))
            operator = stack.enter_context(run_operator(cluster, url, speed))
            if options.profile:
                stack.enter_context(run.profile(operator.pids[0], options.profile))
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(seen.watch(api))
                requests = usage.read_requests(await api.get_text("/metrics"))
                cpu, began = usage.measure_cpu_seconds(operator.pids), time.time()
                creation_seconds = jobs / QUOTAS[CREATE].per_second / speed
                service.get_jobs().script = make_script(began, creation_seconds, speed)
                await api.send_all([Request("POST", JOBS_PATH, build_job(f"job-{each:04d}")) for each in range(jobs)])
                await wait_until_succeeded(seen, jobs, options.until)
                seconds = time.time() - began
                watch.cancel()
            return Measurement(
                *(service, seen, began, seconds, usage.measure_cpu_seconds(operator.pids) - cpu),
                usage.measure_peak_mib(operator.pids),
                usage.read_requests(await api.get_text("/metrics")) - requests,
            )


async def wait_until_succeeded(seen: Seen, jobs: int, until: float) -> None:
    """Wait until this many jobs have succeeded, or for `until` seconds, and print the progress."""
    printed_at = began = time.monotonic()
    while len(seen.succeeded) < jobs and time.monotonic() < began + until:
        await asyncio.sleep(POLL_SECONDS)
        if time.monotonic() - printed_at > PROGRESS_SECONDS:
            printed_at = time.monotonic()
            counts = Counter(states[-1][1][1] for states in seen.states.values() if states)
            print(f"{printed_at - began:.0f} s: {dict(counts)}", file=sys.stderr, flush=True)


def summarise(measurement: Measurement, jobs: int, speed: int) -> dict[str, object]:
    """Return the figures."""
    service, seconds, sweep_seconds = measurement.service, measurement.seconds, LIST_SECONDS / speed
    after_start = measurement.began + START_SECONDS / speed
    # If the measurement ends early, later changes could not be late.
    has_ended_early = len(measurement.seen.succeeded) < jobs
    until = measurement.began + seconds - LATE_SWEEPS * sweep_seconds if has_ended_early else math.inf
    creations = sorted(call.at.timestamp() for call in service.list_calls(CREATE) if not call.outcome)
    return {
        "seconds": round(seconds, 1),
        "created_seconds": {
            "first_to_last": round(creations[-1] - creations[0], 1),
            "applied_to_last": round(creations[-1] - measurement.began, 1),
        },
        "created": len(creations),
        "delay": summarise_delays(list_delays(measurement, 0.0, until), sweep_seconds),
        "after_start": summarise_delays(list_delays(measurement, after_start, until), sweep_seconds),
        "aws": summarise_calls(service.calls, seconds),
        "throttled": sum(call.outcome == "ThrottlingException" for call in service.calls),
        "other_errors": dict(Counter(f"{call.operation} {call.outcome}" for call in service.calls if call.outcome)),
        "operator": {
            "cpu_seconds": round(measurement.cpu_seconds, 1),
            "cores_at_speed_1": round(measurement.cpu_seconds / seconds / speed, 3),
            "peak_mib": measurement.peak_mib,
        },
        "api_server": usage.summarise_requests(measurement.requests, PLURAL, jobs),
    }


def summarise_delays(delays: Sequence[float], sweep_seconds: float) -> dict[str, object]:
    """Return the figures of all changes."""
    figures = {"p50": statistics.median(delays), "p99": statistics.quantiles(delays, n=100)[-1], "max": max(delays)}
    return {
        "changes": len(delays),
        **{
            name: {"seconds": round(value, 2), "sweeps": round(value / sweep_seconds, 2)}
            for name, value in figures.items()
        },
        "late": sum(delay > LATE_SWEEPS * sweep_seconds for delay in delays),
    }


def main() -> None:
    """Start the control plane, measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--speed", type=int, default=1, help="how much faster than on AWS all times pass")
    parser.add_argument("--until", type=float, default=math.inf, help="the seconds after which to end")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="where py-spy writes the operator's stacks")
    options = parser.parse_args()
    interruption.handle_signals()
    with control_plane.run_control_plane() as cluster:
        Kubectl(cluster.site.state.kubeconfig).define(format_crd_yaml())
        measurement = asyncio.run(measure(cluster, options))
    result = summarise(measurement, options.jobs, options.speed)
    settings = {
        "jobs": options.jobs,
        "speed": options.speed,
        "sweep_seconds": LIST_SECONDS / options.speed,
        "allowed_per_second": {operation: rate * options.speed for operation, rate in RATES.items()},
        "cores": os.cpu_count(),
    }
    versions = {"muster": get_version(), "kubernetes": KUBERNETES, "python": platform.python_version()}
    print(json.dumps({"benchmark": "sagemaker_jobs", "versions": versions, "settings": settings, **result}))


if __name__ == "__main__":
    main()
