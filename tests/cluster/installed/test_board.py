"""The board as the chart installs it, and the tunnel by which readers come in."""

import contextlib
import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster import programs
from cluster.cli.told_jobs import NAME, ToldJobs
from cluster.installation import Installation
from cluster.shared import Kubectl
from support.board_client import BoardClient, open_client, read_event

POD = "pod/muster-board-0"
FORWARDED = re.compile(r"Forwarding from (127\.0\.0\.1:\d+) -> 8090")


@dataclass(frozen=True)
class Reader:
    """A user who may read the jobs of the installation's namespace, and open a tunnel to the board."""

    kubeconfig: Path
    token: str

    @contextlib.contextmanager
    def forward(self, system: str) -> Iterator[str]:
        """Run kubectl port-forward; the value is the board's address."""
        where = [f"--kubeconfig={self.kubeconfig}", f"--namespace={system}"]
        command = [str(programs.find("kubectl")), "port-forward", *where, POD, ":8090"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tunnel:
            assert tunnel.stdout is not None
            try:
                said = tunnel.stdout.readline()
                forwarded = FORWARDED.match(said)
                assert forwarded is not None, said
                yield f"http://{forwarded[1]}"
            finally:
                tunnel.terminate()


@pytest.fixture
def reader(installed_operator: Installation, tmp_path: Path) -> Iterator[Reader]:
    kubectl, system, team = installed_operator.kubectl, installed_operator.system, installed_operator.namespace
    account = f"--serviceaccount={team}:reader"
    kubectl("create", "serviceaccount", "reader", f"--namespace={team}")
    kubectl("create", "rolebinding", "reader", "--clusterrole=view", account, f"--namespace={team}")
    kubectl("create", "rolebinding", "reader", "--role=muster-board-readers", account, f"--namespace={system}")
    api_token, token = (
        kubectl("create", "token", "reader", f"--namespace={team}", *options).strip()
        for options in ((), ("--audience=muster-board",))
    )
    config = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json"))
    config["users"][0]["user"] = {"token": api_token}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config), encoding="utf-8")
    yield Reader(kubeconfig, token)
    kubectl("delete", "rolebinding", "reader", f"--namespace={system}")
    kubectl("delete", "rolebinding,serviceaccount", "reader", f"--namespace={team}")


@contextlib.asynccontextmanager
async def opened(reader: Reader, system: str) -> AsyncIterator[BoardClient]:
    with reader.forward(system) as url:
        async with open_client(url, reader.token) as board:
            yield board


async def test_a_reader_with_a_tunnel_sees_the_jobs_that_the_role_view_shows(
    installed_operator: Installation, reader: Reader
) -> None:
    team = installed_operator.namespace
    told = ToldJobs(installed_operator.kubectl, team)
    told.create()
    try:
        async with opened(reader, installed_operator.system) as board:
            assert "muster board" in (await board.read("/"))[1]
            listed = await board.read_json(f"/api/jobs?namespace={team}")
            assert f"{team}/{NAME}" in [job["title"] for job in listed["jobs"]]
            async with board.get(f"/api/jobs/{team}.{NAME}/events") as stream:
                assert (await read_event(stream))["name"] == NAME
            status, text = await board.read(f"/api/jobs/{team}.{NAME}/ranks/0")
            assert (status, text) == (403, f"this board shows no logs: muster logs {NAME} --rank 0 -n {team}\n")
    finally:
        told.delete()


def test_a_reader_s_tunnel_reaches_no_other_pod(installed_operator: Installation, reader: Reader) -> None:
    mine = Kubectl(reader.kubeconfig)
    for pod in installed_operator.pods:
        with pytest.raises(AssertionError, match=r"forbidden"):
            mine("port-forward", f"pod/{pod}", ":8081", f"--namespace={installed_operator.system}")
