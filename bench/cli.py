"""Measures the CPU seconds of short `muster` commands, beside the floor of Python and of the libraries that all need.

    python bench/cli.py [--runs 15]

It runs the commands in turns, so that other work on the machine affects all alike, and takes the median of the user and
system time. `muster ranks` and `list` ask an API server of this process, which serves the status of a job of 16 ranks
over TLS, with a token in the kubeconfig. The commands run as users run them: with compiled modules. Prints one JSON
line.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pydantic

from muster.collector.trust.certificate import issue_certificate, make_server_context
from muster.distribution import get_version

HERE = Path(__file__).resolve().parent
JOB = HERE.parent / "training" / "examples" / "digits" / "job.yaml"
BIN = Path(sys.executable).parent
NODES, RANKS = 2, 16

COMMANDS: Mapping[str, Sequence[str]] = {
    "python": ("python", "-c", "pass"),
    "libraries": ("python", "-c", "import pydantic, yaml"),
    "validate": ("muster", "validate", "-f", str(JOB)),
    "render": ("muster", "render", "-f", str(JOB)),
    "ranks": ("muster", "ranks", "digits"),
    "list": ("muster", "list"),
}


def build_job() -> dict[str, object]:
    """Return a running job as the API server returns it."""
    return {
        "apiVersion": "muster.dev/v1",
        "kind": "DistributedTrainingJob",
        "metadata": {
            "name": "digits",
            "namespace": "default",
            "uid": "4b9d2f0e-0d7b-4f5c-9a56-8f6a8e2c1d11",
            "generation": 1,
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodes": NODES, "procsPerNode": RANKS // NODES, "launcher": {"torchrun": {}}, "command": ["train.py"]},
        "status": {
            "observedGeneration": 1,
            "phase": "Running",
            "message": f"all {RANKS} ranks run",
            "attempt": 1,
            "startTime": "2026-01-01T00:00:10Z",
            "nodes": {"desired": NODES, "ready": NODES},
            "ranks": {
                "world": RANKS,
                "running": RANKS,
                "ready": f"{RANKS}/{RANKS}",
                "byState": [{"state": "Running", "count": RANKS, "ranks": f"0-{RANKS - 1}"}],
            },
            "conditions": [
                {
                    "type": "Running",
                    "status": "True",
                    "reason": "Running",
                    "message": f"all {RANKS} ranks run",
                    "lastTransitionTime": "2026-01-01T00:00:10Z",
                }
            ],
        },
    }


class ApiHandler(BaseHTTPRequestHandler):
    """Serves the job at every path, also as a list."""

    protocol_version = "HTTP/1.1"
    body = json.dumps({**build_job(), "items": [build_job()]}).encode()

    def do_GET(self) -> None:
        """Answer a GET request."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Log nothing."""


@contextmanager
def serve_job(folder: Path) -> Iterator[Path]:
    """Serve the job over TLS; yield the path of a kubeconfig."""
    certificate = issue_certificate(["127.0.0.1"], time.time(), 3600.0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), ApiHandler)
    server.socket = make_server_context(certificate).wrap_socket(server.socket, server_side=True)
    (folder / "ca.crt").write_text(certificate.authority, encoding="utf-8")
    cluster = {"server": f"https://127.0.0.1:{server.server_port}", "certificate-authority": str(folder / "ca.crt")}
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "bench",
                "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
                "clusters": [{"name": "bench", "cluster": cluster}],
                "users": [{"name": "bench", "user": {"token": "bench"}}],
            }
        ),
        encoding="utf-8",
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield kubeconfig
    finally:
        server.shutdown()
        server.server_close()


def measure_cpu_seconds(command: Sequence[str], environment: Mapping[str, str], output: Path) -> float:
    """Run the command; return its user and system time. Raises `SystemExit` if it fails."""
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [BIN / command[0], *command[1:]], env=environment, stdout=stream, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: {output.read_text(encoding='utf-8')}")
    return usage.ru_utime + usage.ru_stime


def measure_all(runs: int) -> dict[str, list[float]]:
    """Return the CPU seconds of each run of each command."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as name, serve_job(Path(name)) as kubeconfig:
        # The installer compiles the modules of muster, or the first command does.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["KUBECONFIG"] = str(kubeconfig)
        for run in range(runs + 1):
            for command_name, command in COMMANDS.items():
                used = measure_cpu_seconds(command, environment, Path(name, "output"))
                if run:  # the first run compiles the modules
                    seconds[command_name].append(used)
    return seconds


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    seconds = measure_all(options.runs)
    print(
        json.dumps(
            {
                "benchmark": "cli",
                "versions": {
                    "muster": get_version(),
                    "python": platform.python_version(),
                    "pydantic": pydantic.VERSION,
                },
                "settings": {"runs": options.runs, "cores": os.cpu_count(), "job": JOB.name, "ranks": RANKS},
                "cpu_seconds": {
                    name: {"median": round(statistics.median(values), 3), "max": round(max(values), 3)}
                    for name, values in seconds.items()
                },
            }
        )
    )


if __name__ == "__main__":
    main()
