"""`muster board-server` with a real API server, the permissions of its account in the chart, and readers' tokens."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from cluster.cli.told_jobs import FAILED, NAME, RUNNING, ToldJobs
from cluster.helm import Helm
from cluster.operator.operator_process import READY_SECONDS, account
from cluster.shared import Kubectl, SharedCluster
from cluster.waiting import PAUSE_SECONDS, serves
from muster.api.crd import format_crd_yaml
from muster.cli.web.served.connections import MAX_CONNECTIONS
from support.board_client import BoardClient, open_client, read_event
from support.free_port import free_port
from support.muster_process import MusterProcess

AUDIENCE = "--audience=muster-board"
READS = "--verb=get,list,watch"
JOBS = "--resource=distributedtrainingjobs.muster.dev"


@dataclass(frozen=True)
class Site:
    """A board for the namespaces `a` and `b`, each with a job, and readers with accounts in `a`."""

    kubectl: Kubectl
    url: str
    a: str
    b: str
    process: "subprocess.Popen[bytes]"

    def create_reader(self, name: str, *namespaces: str, audience: str = AUDIENCE) -> str:
        """Create an account that may read the jobs of these namespaces; return its token."""
        self.kubectl("create", "serviceaccount", name, f"--namespace={self.a}")
        for namespace in namespaces:
            self.allow(name, namespace, READS, JOBS)
        options = [audience] if audience else []
        return self.kubectl("create", "token", name, f"--namespace={self.a}", *options).strip()

    def allow(self, name: str, namespace: str, *rights: str, role: str = "") -> None:
        """Give an account rights in a namespace."""
        role, inside = role or name, f"--namespace={namespace}"
        self.kubectl("create", "role", role, *rights, inside)
        self.kubectl("create", "rolebinding", role, f"--role={role}", f"--serviceaccount={self.a}:{name}", inside)

    def key(self, namespace: str, name: str = NAME) -> str:
        return f"/api/jobs/{namespace}.{name}"


@pytest.fixture(scope="module")
def site(shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    shared_cluster.up()
    kubectl, folder = Kubectl(shared_cluster.kubeconfig), tmp_path_factory.mktemp("board")
    port, health_port = free_port(), free_port()
    a, b = f"test-board-a-{port}", f"test-board-b-{port}"
    kubectl.define(format_crd_yaml())
    with contextlib.ExitStack() as stack:
        for namespace in (a, b):
            kubectl("create", "namespace", namespace)
            stack.callback(kubectl, "delete", "namespace", namespace, "--wait=false")
            ToldJobs(kubectl, namespace).create(RUNNING)
        kubeconfig = account(kubectl, Helm(shared_cluster.kubeconfig), a, folder, (b,), name="muster-board")
        options = (f"--namespace={a}", f"--namespace={b}", f"--port={port}", f"--health-port={health_port}", "--logs")
        process = MusterProcess(["board-server", *options], env={**os.environ, "KUBECONFIG": str(kubeconfig)})
        stack.callback(stop, process)
        await_ready(process, health_port)
        yield Site(kubectl, f"http://127.0.0.1:{port}", a, b, process)


def await_ready(process: "subprocess.Popen[bytes]", port: int) -> None:
    is_ready, deadline = serves(f"http://127.0.0.1:{port}/readyz"), time.monotonic() + READY_SECONDS
    while not is_ready():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(PAUSE_SECONDS)


def stop(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


@contextlib.asynccontextmanager
async def reading(site: Site, token: str) -> AsyncIterator[BoardClient]:
    async with open_client(site.url, token) as board:
        yield board


async def test_the_page_needs_no_token_and_all_data_needs_a_valid_one(site: Site) -> None:
    other = site.kubectl("create", "token", "default", f"--namespace={site.a}", "--audience=elsewhere").strip()
    for token in ("", "wrong", other, other[:-4] + "AAAA"):
        async with reading(site, token) as board:
            assert (await board.read("/"))[0] == 200
            for path in ("/api/jobs", f"{site.key(site.a)}/events", f"{site.key(site.a)}/ranks/0"):
                async with board.get(path) as response:
                    assert response.status == 401
                    assert response.headers["WWW-Authenticate"] == 'Bearer realm="muster-board"'
                    assert NAME not in await response.text()


@pytest.mark.parametrize("audience", [AUDIENCE, ""], ids=["board", "api"])
async def test_a_reader_of_one_namespace_sees_only_its_jobs(site: Site, audience: str) -> None:
    token = site.create_reader(f"alice-{len(audience)}", site.a, audience=audience)
    async with reading(site, token) as board:
        listed = await board.read_json(f"/api/jobs?namespace={site.a}")
        assert [(job["title"], job["phase"], job["world"]) for job in listed["jobs"]] == [
            (f"{site.a}/{NAME}", "Running", 4)
        ]
        async with board.get(f"{site.key(site.a)}/events") as stream:
            assert (await read_event(stream))["message"] == RUNNING.message

        for path in ("events", "ranks/0"):
            hidden = await board.read(f"{site.key(site.b)}/{path}")
            missing = await board.read(f"{site.key(site.b, 'missing')}/{path}")
            assert hidden[0] == missing[0] == 404
            assert hidden[1].replace(NAME, "missing") == missing[1]
        mine = await board.read(f"{site.key(site.a, 'missing')}/events")
        hidden = await board.read(f"{site.key(site.b, 'missing')}/events")
        assert mine == (404, hidden[1].replace(site.b, site.a))
        lists = {name: await board.read(f"/api/jobs?namespace={name}") for name in (site.b, "nowhere", "")}
        assert {status for status, _ in lists.values()} == {403}
        assert lists[site.b][1].replace(site.b, "nowhere") == lists["nowhere"][1]


async def test_a_stream_shows_changes_and_ends_when_the_right_is_withdrawn(site: Site) -> None:
    token = site.create_reader("bob", site.b)
    told = ToldJobs(site.kubectl, site.b)
    async with reading(site, token) as board, board.get(f"{site.key(site.b)}/events") as stream:
        assert (await read_event(stream))["phase"] == "Running"
        told.tell(FAILED)
        while (await read_event(stream))["phase"] != "Failed":
            pass
        site.kubectl("delete", "rolebinding", "bob", f"--namespace={site.b}")
        while await read_event(stream) is not None:
            pass
        assert (await board.read(f"{site.key(site.b)}/events"))[0] == 404


async def test_a_rank_s_lines_are_for_who_may_get_the_pods_logs(site: Site) -> None:
    token = site.create_reader("carol", site.a)
    told = ToldJobs(site.kubectl, site.a)
    told.pod(0, "echo '[rank 0] first'; echo '[rank 1] other'")
    told.pod_is(0, "Succeeded")
    path = f"{site.key(site.a)}/ranks/0"
    async with reading(site, token) as board:
        assert await board.read(path) == (403, f"you may not get pods/log in the namespace {site.a}\n")
    site.allow("dora", site.a, "--verb=get", "--resource=pods/log", role="logs")
    async with reading(site, site.create_reader("dora", site.a)) as board:
        assert await board.read_json(path) == {"lastLines": ["first"], "stackLines": []}


async def test_requests_of_other_pages_and_large_ones_are_refused(site: Site) -> None:
    token = site.create_reader("erin", site.a)
    async with reading(site, token) as board:
        expected = {
            ("Host", "evil.example"): 421,
            ("Host", "localhost:1"): 200,  # kubectl port-forward may listen on any port
            ("Origin", "http://evil.example"): 403,
            ("Origin", site.url): 200,
            ("X-Large", "x" * 20_000): 400,
            ("Authorization", f"Bearer {'x' * 16_300}"): 401,
        }
        for (name, value), status in expected.items():
            async with board.get(f"/api/jobs?namespace={site.a}", **{name: value}) as response:
                assert response.status == status, name
        async with board.session.post(f"{board.url}/api/jobs", data=b"x" * 1_000_000) as response:
            assert response.status in (405, 413)
        assert (await board.read(f"/{'x' * 5000}"))[0] == 400


async def test_connections_without_a_token_give_way(site: Site) -> None:
    token = site.create_reader("frank", site.a)
    host, port = site.url.removeprefix("http://").split(":")
    async with reading(site, token) as board, board.get(f"{site.key(site.a)}/events") as stream:
        await read_event(stream)
        with contextlib.ExitStack() as stack:
            for _ in range(MAX_CONNECTIONS + 20):
                stack.enter_context(socket.create_connection((host, int(port))))
            assert (await board.read(f"/api/jobs?namespace={site.a}"))[0] == 200
            assert await read_event(stream) is not None
