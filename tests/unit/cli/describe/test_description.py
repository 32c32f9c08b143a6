"""The text of `muster describe`."""

from dataclasses import replace

from muster.api.document import JSON
from muster.api.status.goodput import Goodput
from muster.api.status.network import NetworkStatus, NodeLink
from muster.api.status.progress import Progress
from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.status.status import Condition, NodeCounts, RankDetail, RankStatus, Status
from muster.api.yaml.serialise import serialise_status
from muster.cli.board.observed_job import ObservedJob, read_observed_job
from muster.cli.describe.description import MAX_FAILED_RANKS, describe
from muster.cli.describe.events import EventGroup
from muster.cli.describe.node_rows import MAX_NODES
from muster.cli.describe.observations import JobObservations
from muster.objects.kubernetes.containers import Container, Running, Terminated, Waiting
from muster.objects.kubernetes.pods import PodView

CREATED = "2026-11-21T05:00:00Z"
NOW = 1795237200.0 + 600
FAILED_RANK = RankDetail(
    rank=3, node=1, pod="vit-1-0", node_name="ip-7", state="Failed", exit_code=3, reason="RankFailed", step=88,
    message="ValueError: bad batch", at="2026-11-21T05:09:00Z",
)  # fmt: skip
FAILED = Status(
    phase="Failed",
    message="Rank 3 on vit-1 exited with 3 at step 88",
    conditions=(
        Condition(type="Failed", status="True", reason="RankFailed", message="Rank 3 failed",
                  last_transition_time="2026-11-21T05:09:00Z"),
    ),
    nodes=NodeCounts(desired=2, ready=0),
    network=NetworkStatus(nodes=(NodeLink(node=1, interface="eth0", address="10.0.0.7", speed_mbps=25000),)),
    ranks=RankStatus(world=4, running=0, ready="0/4", details=(FAILED_RANK,)),
    progress=Progress(step=88, steps_per_second=3.4, percent=12, metrics={"loss": 0.31}),
    goodput=Goodput(ratio=0.5, total_seconds=120),
    attempt=2,
    restarts=Restarts(
        total=3,
        failures=1,
        disruptions=0,
        replacement=0,
        history=(
            RestartRecord(attempt=1, reason="OOMKilled", message="Rank 0 ran out of memory", node_name="ip-3",
                          counts_as="Failure", at="2026-11-21T05:05:00Z", seconds_lost=12.5, steps_lost=35),
        ),
    ),
    start_time=CREATED,
    completion_time="2026-11-21T05:09:00Z",
)  # fmt: skip


def observed(status: Status, **spec: JSON) -> ObservedJob:
    metadata: dict[str, JSON] = {"name": "vit", "namespace": "team-a", "uid": "u", "creationTimestamp": CREATED}
    return read_observed_job({"metadata": metadata, "spec": spec, "status": serialise_status(status)})


def pod(node: int, state: Running | Terminated | Waiting, phase: str = "Running") -> PodView:
    trainer = Container("trainer", "image", state)
    return PodView(f"vit-{node}-0", "team-a", f"p-{node}", "u", node, 0, phase, trainer, kube_node=f"ip-{node}")


def section(lines: list[str], title: str) -> list[str]:
    rest = lines[lines.index(title) + 1 :]
    return rest[: rest.index("")] if "" in rest else rest


def test_a_failed_job() -> None:
    pods = (pod(0, Running()), pod(1, Terminated(3, "Error"), "Failed"))
    event = EventGroup("Warning", "Failed", "Rank 3 failed", ("vit",), 2, NOW - 60)
    lines = describe(JobObservations(observed(FAILED), pods, (event,), {3: ("one\x1b[2J", "two")}), NOW)
    assert lines == [
        "vit  team-a  Kubernetes  Failed",
        "Rank 3 on vit-1 exited with 3 at step 88",
        "  time      9:00",
        "  attempt   2",
        "  ranks     0/4",
        "  progress  step 88, 3.4 steps/s, 12 %, loss 0.31",
        "  goodput   50.0 % of 120 s",
        "",
        "Conditions",
        "  TYPE    STATUS  REASON      AGE  MESSAGE",
        "  Failed  True    RankFailed  60s  Rank 3 failed",
        "",
        "Earlier attempts",
        "  ATTEMPT  REASON     COUNTS AS  AGE  LOST              WHAT FAILED FIRST",
        "  1        OOMKilled  Failure    5m   12.5 s, 35 steps  Rank 0 ran out of memory (ip-3)",
        "  2 earlier restarts left out",
        "",
        "Nodes",
        "  NODE  RANKS  POD      STATE                KUBERNETES NODE  NETWORK",
        "  0     0-1    vit-0-0  Running              ip-0             -",
        "  1     2-3    vit-1-0  Error (exit code 3)  ip-1             eth0 10.0.0.7, 25,000 Mbit/s",
        "",
        "Failed ranks",
        "  rank 3 on vit-1-0 (ip-7): RankFailed, exit code 3, step 88, 60s ago: ValueError: bad batch",
        "  | one",
        "  | two",
        "",
        "Events",
        "  AGE  COUNT  TYPE     REASON  OBJECT  MESSAGE",
        "  60s  2      Warning  Failed  vit     Rank 3 failed",
        "",
        "What to do",
        "  the reason RankFailed is described in docs/reasons.md#why-a-job-failed",
        "  `kubectl delete dtj vit` deletes the job; apply it again to run it again",
    ]


def test_what_is_unknown_is_left_out() -> None:
    lines = describe(JobObservations(observed(Status(), backend="SageMaker")), NOW)
    assert lines == [
        "vit  team-a  SageMaker  Pending",
        "muster's operator has not processed it yet",
        "  time  10:00",
        "",
        "What to do",
        "  `muster doctor` checks whether muster's operator runs: docs/troubleshooting.md#the-job-has-no-phase",
    ]


def test_only_the_first_failures_are_listed() -> None:
    details = tuple(FAILED_RANK.model_copy(update={"rank": rank}) for rank in range(10))
    assert FAILED.ranks is not None
    status = FAILED.model_copy(update={"ranks": FAILED.ranks.model_copy(update={"details": details})})
    failures = section(describe(JobObservations(observed(status)), NOW), "Failed ranks")
    assert [line.split()[1] for line in failures] == [str(rank) for rank in range(MAX_FAILED_RANKS)]


def test_pods_with_a_problem_are_listed_before_running_ones() -> None:
    last = MAX_NODES + 7
    pods = (*(pod(node, Running()) for node in range(last)), pod(last, Waiting("ImagePullBackOff"), "Pending"))
    nodes = section(describe(JobObservations(observed(Status()), pods), NOW), "Nodes")
    assert nodes[-2].split()[:4] == [str(last), "-", f"vit-{last}-0", "ImagePullBackOff"]
    assert nodes[-1].split() == ["8", "more", "pods", "Running"]


def test_a_deleted_pod_and_one_that_waits_for_a_node() -> None:
    deleted = replace(pod(0, Running()), deletion_requested_at=NOW)
    waiting = replace(pod(1, Waiting(), "Pending"), kube_node="")
    rows = section(describe(JobObservations(observed(Status()), (deleted, waiting)), NOW), "Nodes")
    assert [row.split()[3:5] for row in rows[1:]] == [["Terminating", "ip-0"], ["Pending", "-"]]


def test_the_ranks_of_spares_and_of_reordered_nodes() -> None:
    ranks, nodes = RankStatus(world=4, running=4, ready="4/4"), NodeCounts(desired=2, ready=2)
    status = Status(phase="Running", members="2,0", ranks=ranks, nodes=nodes)
    pods = tuple(pod(node, Running()) for node in range(3))
    rows = section(describe(JobObservations(observed(status), pods), NOW), "Nodes")
    assert [row.split()[1] for row in rows[1:]] == ["2-3", "-", "0-1"]


def test_text_of_other_users_does_not_control_the_terminal() -> None:
    bad = "\x1b[2J\u202e"
    status = FAILED.model_copy(update={"message": bad, "phase": bad})
    pods = (pod(0, Waiting(bad), bad),)
    lines = describe(JobObservations(observed(status, backend=bad), pods, (), {3: (bad,)}), NOW)
    assert all(line.isprintable() for line in lines)
