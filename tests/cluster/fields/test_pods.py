"""Jobs with unusual pod templates run, and the status has the end of their ranks."""

import json

import pytest

from cluster.ended_job import succeeded
from cluster.fields.side_by_side import condition, template
from cluster.operator.cluster_jobs import FOREVER, Jobs
from cluster.operator.site import Site

ONE = {"nodes": 1, "procsPerNode": 1}
TELLS = """
import json, os, socket
print(json.dumps({"host": socket.gethostname(), "uid": os.getuid(), "mine": os.environ.get("MINE"), "pid": os.getpid(),
    "writes": [path for path in ("/", "/opt/ml/model", "/dev/shm", "/opt/ml/checkpoints") if os.access(path, os.W_OK)],
    "init": open("/proc/1/cmdline").read().split(chr(0))[0]}), flush=True)
"""
MEETS = (
    TELLS
    + """
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(address) as server:
        server.accept()
else:
    while True:
        try:
            socket.create_connection(address, 1).close()
            break
        except OSError:
            pass
"""
)
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
AS_NOBODY = {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}}


@pytest.fixture(scope="module")
def odd(fields_site: Site) -> Jobs:
    """Return all jobs of this module."""
    jobs = fields_site.jobs
    jobs.apply("shared-pids", TELLS, **ONE, template=template(shareProcessNamespace=True))
    jobs.apply(
        "shared-kill", "import os; os.kill(os.getpid(), 9)", **ONE, template=template(shareProcessNamespace=True)
    )
    differs = {"name": "trainer", "env": [{"name": "MINE", "value": "node 0"}]}
    overrides = [{"nodes": "0", "template": {"spec": {"containers": [differs]}}}]
    jobs.apply("differs", MEETS, nodes=2, procsPerNode=1, nodeOverrides=overrides)
    return jobs


def report_of(jobs: Jobs, pod: str) -> dict[str, object]:
    """Return the report of the pod's rank about itself."""
    (line,) = (line for line in jobs.wait_for_log(pod, "[rank ").splitlines() if line.startswith("[rank "))
    result: dict[str, object] = json.loads(line.partition("] ")[2])
    return result


def test_a_shared_process_namespace_hides_no_end(odd: Jobs) -> None:
    odd.wait("shared-pids", "condition=Complete")
    assert "pause" in str(report_of(odd, "shared-pids-0-0")["init"])
    odd.wait("shared-kill", "condition=Failed")
    (detail,) = odd.status("shared-kill")["ranks"]["details"]
    assert (detail["signal"], detail["reason"]) == (9, "RankKilled")


def test_a_node_can_differ(odd: Jobs) -> None:
    odd.wait("differs", "condition=Complete")
    assert [report_of(odd, f"differs-{node}-0")["mine"] for node in (0, 1)] == ["node 0", None]


def test_a_restricted_namespace_takes_a_job_that_asks_for_nothing(odd: Jobs) -> None:
    odd.kubectl("label", "namespace", odd.namespace, "pod-security.kubernetes.io/enforce=restricted")
    try:
        odd.apply(
            "careful", TELLS, **ONE, template=template({"securityContext": RESTRICTED}, securityContext=AS_NOBODY)
        )
        odd.wait("careful", "condition=Complete")
        assert report_of(odd, "careful-0-0")["uid"] == 65534
        assert report_of(odd, "careful-0-0")["writes"] == ["/opt/ml/model", "/dev/shm", "/opt/ml/checkpoints"]  # noqa: S108 - a mount
    finally:
        odd.kubectl("label", "namespace", odd.namespace, "pod-security.kubernetes.io/enforce-")


def test_a_machine_s_devices_make_the_ranks(odd: Jobs) -> None:
    gpu, gpus = "nvidia.com/gpu", 2
    nodes = odd.kubectl("get", "nodes", "--output=name").split()
    for node in nodes:
        patch = json.dumps({"status": {"capacity": {gpu: str(gpus)}}})
        odd.kubectl("patch", node, "--subresource=status", "--type=merge", "--patch", patch)
    try:
        asked = {"limits": {gpu: gpus}}
        odd.apply("devices", TELLS, nodes=2, procsPerNode="Auto", resources=asked)
        odd.wait("devices", "condition=Complete")
        assert succeeded(odd.status("devices")) == "4/4"
        odd.apply("too-many", FOREVER, nodes=2, procsPerNode="Auto", resources={"limits": {gpu: 16}})
        odd.wait("too-many", 'jsonpath={.status.conditions[?(@.type=="Scheduled")].reason}=Unschedulable')
        assert gpu in condition(odd, "too-many", "Scheduled")["message"]
        assert odd.status("too-many")["ranks"]["world"] == 32
    finally:
        odd.run("delete", "dtj/too-many", "--ignore-not-found")
        for node in nodes:
            patch = json.dumps({"status": {"capacity": {gpu: None}, "allocatable": {gpu: None}}})
            odd.kubectl("patch", node, "--subresource=status", "--type=merge", "--patch", patch)
