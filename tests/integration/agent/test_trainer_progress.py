"""The agent's server for Kubeflow Trainer's progress protocol, with real ranks that report to it."""

import json
import sys

import pytest

from muster_worker.contract.schema import CommandKind, Launcher, Report
from muster_worker.contract.trainer_status import TrainerStatus
from support.agent_world import AgentWorld

PYTHON = sys.executable

CLIENT = """
import json, os, socket, ssl, sys, time, urllib.error, urllib.request
URL, CA_CERT, TOKEN = (f"KUBEFLOW_TRAINER_SERVER_{name}" for name in ("URL", "CA_CERT", "TOKEN"))

def post(status, token=None, method="POST", url=None):
    data = json.dumps({"trainerStatus": status}).encode() if not isinstance(status, bytes) else status
    token = open(os.environ[TOKEN]).read().strip() if token is None else token
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url or os.environ[URL], data=data, headers=headers, method=method)
    context = ssl.create_default_context(cafile=os.environ[CA_CERT])
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code

def steps(step, total, **more):
    values = {"current_step": step, "total_steps": total, **more}
    return [{"name": name, "value": str(value)} for name, value in values.items()]
"""


def launch(world: AgentWorld, script: str, *, launcher: str = Launcher.DIRECT, nodes: int = 1, procs: int = 1) -> None:
    path = world.write_script(CLIENT + script)
    world.make_plan(PYTHON, path, launcher=launcher, nodes=nodes, procs=procs)
    world.launch()


def find_status(report: Report) -> TrainerStatus | None:
    return report.ranks[0].trainer_status if report.ranks else None


def test_rank_0_reports_its_progress_and_its_metrics(world: AgentWorld) -> None:
    launch(
        world,
        """
assert post({"progressPercentage": 0, "metrics": steps(0, 100)[1:]}) == 200
time.sleep(0.2)
assert post({"progressPercentage": 10, "metrics": steps(10, 100, loss=0.5)}) == 200
time.sleep(1)
assert post({"progressPercentage": 30, "estimatedRemainingSeconds": 7, "metrics": steps(30, 100, loss=0.25)}) == 200
time.sleep(60)
""",
    )
    report = world.wait(0, lambda report: (status := find_status(report)) is not None and status.percent == 30)
    status = find_status(report)
    assert status is not None
    assert (status.remaining_seconds, status.step, status.total_steps) == (7, 30, 100)
    assert status.steps_per_second == pytest.approx(20, rel=0.3)
    assert 0 <= status.age < 5
    assert [(metric.name, metric.value, metric.rank) for metric in report.metrics] == [("loss", 0.25, 0)]
    world.send(CommandKind.KILL)
    world.wait_ended()


def test_the_last_report_of_a_rank_is_kept_after_its_end(world: AgentWorld) -> None:
    launch(world, 'assert post({"progressPercentage": 100, "estimatedRemainingSeconds": 0}) == 200\n')
    report = world.wait_ended()
    assert report.ranks[0].exit_code == 0
    assert find_status(report) is not None


@pytest.mark.parametrize("launcher", [Launcher.DIRECT, Launcher.PER_NODE])
def test_only_rank_0_has_the_variables(world: AgentWorld, launcher: str) -> None:
    names = "[name for name in sorted(os.environ) if name.startswith('KUBEFLOW_')]"
    launch(world, f"print('HAS', json.dumps({names}), flush=True)\n", launcher=launcher, nodes=2)
    lines = {}
    for node in (0, 1):
        world.wait_ended(node)
    world.leave()
    for node in (0, 1):
        lines[node] = json.loads(world.log(node).split("HAS ")[1].split("\n")[0])
    expected = [f"KUBEFLOW_TRAINER_SERVER_{name}" for name in ("CA_CERT", "TOKEN", "URL")]
    assert lines == {0: expected, 1: []}


def test_another_rank_of_the_node_has_none(world: AgentWorld) -> None:
    launch(world, "print('HAS', os.environ['RANK'], URL in os.environ, flush=True)\n", procs=2)
    world.wait_ended()
    world.leave()
    assert "HAS 0 True" in world.log()
    assert "HAS 1 False" in world.log()


def test_the_user_s_server_comes_first(world: AgentWorld) -> None:
    script = world.write_script(f"{CLIENT}print('URL', os.environ[URL], TOKEN in os.environ, flush=True)\n")
    world.make_plan(PYTHON, script)
    world.launch(environment={"KUBEFLOW_TRAINER_SERVER_URL": "https://mine"})
    world.wait_ended()
    world.leave()
    assert "URL https://mine False" in world.log()


def test_a_later_attempt_begins_without_the_progress(world: AgentWorld) -> None:
    launch(
        world,
        'if os.environ["MUSTER_ATTEMPT"] == "1": post({"progressPercentage": 60})\nelse: time.sleep(60)\n',
    )
    world.wait_ended()
    world.send(CommandKind.START, attempt=2)
    report = world.wait(0, lambda report: report.attempt == 2 and report.ranks[0].pid is not None)
    assert find_status(report) is None
    world.send(CommandKind.KILL, attempt=2)
    world.wait_ended()


def test_a_proxy_does_not_get_the_reports(world: AgentWorld) -> None:
    script = world.write_script(f'{CLIENT}assert post({{"progressPercentage": 1}}) == 200\n')
    world.make_plan(PYTHON, script)
    world.launch(environment={"http_proxy": "http://127.0.0.1:1", "no_proxy": ""})
    assert world.wait_ended().ranks[0].exit_code == 0


def test_bad_requests_are_refused(world: AgentWorld) -> None:
    launch(
        world,
        """
good = {"progressPercentage": 5}
print("ANSWERS", post(good, token="guess"), post(good, token=""), post(good, url=os.environ[URL] + "/other"),
      post(good, method="PUT"), post(b"not json"), post({"progressPercentage": 500}), flush=True)
for _ in range(30):
    code = post({"progressPercentage": 6})
    if code == 429:
        break
print("THEN", code, flush=True)
""",
    )
    report = world.wait_ended()
    world.leave()
    assert "ANSWERS 401 401 404 405 400 400" in world.log()
    assert "THEN 429" in world.log()
    status = find_status(report)
    assert status is not None
    assert status.percent == 6


def test_connections_that_send_nothing_do_not_hold_up_anything(world: AgentWorld) -> None:
    launch(
        world,
        """
host, port = os.environ[URL].split("/")[2].split(":")
held = [socket.create_connection((host, int(port))) for _ in range(8)]
for each in held:
    each.send(b"POST /status HTTP/1.1\\r\\n")
print("ANSWER", post({"progressPercentage": 5}), flush=True)
time.sleep(60)
""",
    )
    report = world.wait(0, lambda report: find_status(report) is not None)
    world.wait_said(0, "ANSWER 200", 1)
    # the heartbeats go on
    sequence = report.sequence
    world.wait(0, lambda report: report.sequence >= sequence + 3)
    world.send(CommandKind.KILL)
    world.wait_ended()


def test_a_flood_does_not_hold_up_the_heartbeats(world: AgentWorld) -> None:
    launch(
        world,
        """
host, port = os.environ[URL].split("/")[2].split(":")
print("flooding", flush=True)
while True:
    with socket.socket() as client:
        client.settimeout(0.01)
        try:
            client.connect((host, int(port)))
            client.send(b"x" * 9000)
        except OSError:
            pass
""",
    )
    world.wait_said(0, "flooding", 1)
    heard = len(world.collector.reports[0])
    world.wait(0, lambda _: len(world.collector.reports[0]) >= heard + 4)
    world.send(CommandKind.KILL)
    assert world.wait_ended().ranks[0].signal == 9
