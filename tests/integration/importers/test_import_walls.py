"""A launch script under `muster import` can send no requests and finds no credentials."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muster.cli.errors import BadInput
from support.import_runs import ImportFolder

STAND_IN = Path(__file__).parents[3] / "operator" / "muster" / "importers" / "sagemaker" / "standin"

ATTEMPTS = [
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/')",
    "import socket; socket.create_connection(('127.0.0.1', {port}))",
    "import socket; socket.socket().connect(('127.0.0.1', {port}))",
    "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))",
    "import socket; socket.getaddrinfo('sagemaker.us-west-2.amazonaws.com', 443)",
    "import asyncio; asyncio.run(asyncio.open_connection('127.0.0.1', {port}))",
    "import subprocess; subprocess.run(['aws', 's3', 'ls'])",
    "import os; os.system('aws s3 ls')",
    "import os; os.execvp('aws', ['aws'])",
    "import os; os.posix_spawn('/bin/true', ['true'], {{}})",
]


@contextmanager
def listener() -> Iterator[tuple[int, list[object]]]:
    """Yield a port of this machine, and its connections."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            try:
                while True:
                    came.append(server.accept())
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=[attempt[:44] for attempt in ATTEMPTS])
def test_nothing_leaves(import_folder: ImportFolder, attempt: str) -> None:
    with listener() as (port, came):
        outcome = import_folder.run(f"{attempt.format(port=port)}\npytorch().fit()")
    assert came == []
    assert "`muster import` does not let a launch script" in outcome.err
    assert (outcome.code, outcome.out) == (1, "")


def test_a_library_that_can_do_without_goes_on(import_folder: ImportFolder) -> None:
    outcome = import_folder.run("import platform; print(platform.processor()); pytorch().fit()")
    assert outcome.code == 0


def may_leave_the_network() -> bool:
    ways = (["unshare", "--net", "true"], ["unshare", "--user", "--net", "true"])
    return any(subprocess.run(way, capture_output=True, check=False).returncode == 0 for way in ways)


@pytest.mark.skipif(not may_leave_the_network(), reason="Linux doesn't let processes here leave the network")
def test_connections_that_python_does_not_see_lead_nowhere(import_folder: ImportFolder) -> None:
    """By libc, which Python's audit hook doesn't see."""
    call = """\
import ctypes, struct
c = ctypes.CDLL(None)
s = c.socket(2, 1, 0)
address = struct.pack("<H", 2) + struct.pack(">H", {port}) + bytes([127, 0, 0, 1]) + bytes(8)
print("connected", c.connect(s, address, 16))
pytorch().fit()
"""
    with listener() as (port, came):
        outcome = import_folder.run(call.format(port=port))
    assert "connected -1" in outcome.err
    assert came == []


def test_the_script_sees_neither_our_environment_nor_our_home(
    import_folder: ImportFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HOME", str(import_folder.folder))
    (import_folder.folder / ".aws").mkdir()
    outcome = import_folder.run(
        "import json, os\nprint(json.dumps([sorted(os.environ), os.listdir(os.path.expanduser('~'))]))\npytorch().fit()"
    )
    (line,) = [line for line in outcome.err.splitlines() if line.startswith("[")]
    names, home = json.loads(line)
    assert home == []
    assert not {name for name in names if name.startswith(("AWS_", "HF_"))}


def test_it_is_given_what_the_user_says(import_folder: ImportFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM", "vision")
    script = "import os\npytorch(tags={'team': os.environ['TEAM'], 'x': os.environ['X']}).fit()"
    assert import_folder.run(script, environment=("TEAM", "X=1")).block["tags"] == {"team": "vision", "x": "1"}


@pytest.mark.parametrize(
    ("pair", "message"),
    [("AWS_SECRET_ACCESS_KEY=x", "no AWS credentials"), ("NOT_SET_HERE", "the variable isn't set here")],
)
def test_but_no_credentials(import_folder: ImportFolder, pair: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        import_folder.run("pytorch().fit()", environment=(pair,))


def test_a_script_that_waits_for_ever_is_ended(import_folder: ImportFolder) -> None:
    outcome = import_folder.run("import time\npytorch().fit()\nwhile True: time.sleep(1)", timeout_seconds=1.5)
    assert "still ran after 1.5 s" in outcome.err
    assert outcome.code == 1


def test_what_a_script_forked_is_ended_with_it(import_folder: ImportFolder) -> None:
    began = time.monotonic()
    outcome = import_folder.run(
        "import os, time\nif os.fork() == 0:\n    time.sleep(600)\nos._exit(3)", timeout_seconds=60
    )
    assert "exit code 3" in outcome.err
    assert time.monotonic() < began + 60


def test_who_waits_for_the_job_finds_it_over(import_folder: ImportFolder) -> None:
    script = """\
    import time
    p = pytorch()
    p.fit(wait=False, job_name="vit")
    while p.latest_training_job.describe()["TrainingJobStatus"] != "Completed":
        time.sleep(60)
    p.latest_training_job.wait()
    print(p.latest_training_job.name, p.model_data)
    """
    outcome = import_folder.run(script)
    assert outcome.code == 0
    assert "vit <unknown: PyTorch.model_data>" in outcome.err


def test_a_process_that_dies_is_reported(import_folder: ImportFolder) -> None:
    outcome = import_folder.run("import os\npytorch().fit()\nos._exit(3)")
    assert "the script's process ended with exit code 3" in outcome.err
    assert outcome.code == 1


def test_the_stand_in_needs_python_alone() -> None:
    """It runs in the script's Python, without muster and its packages."""
    program = f"import sys; sys.path[0] = {str(STAND_IN)!r}; import muster_standin.launch; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True, capture_output=True, text=True)
    assert "'muster_standin.sandbox'" in done.stdout
