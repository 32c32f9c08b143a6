"""Measures what the agent costs the ranks of its node: steps per second, memory, and the time until the script begins.

    PYTHONPATH=tests python bench/agent.py [--pairs 150] [--steps 60] [--starts 20] [--torchrun-starts 6]

It runs the same ranks in turns with and without the agent, so that other work on the machine affects both alike. The
agent is the shipped archive. It reports over TLS to a collector in this process, at the shortest interval that the
operator sets (1 s). The launcher is `direct`, so that without the agent this process starts the ranks itself. The start
is also measured with `torchrun`, which imports torch for seconds.

- `steps`: two groups of ranks, one of them under an agent, train a network with torch's DistributedDataParallel over
  gloo, one rank for each core unless `--ranks` says otherwise. They take turns of `--steps` steps, of about a second.
  While the ranks without an agent train, the agent's processes are stopped (SIGSTOP). `change_percent` is the median
  over the pairs of turns of the difference in steps per second, and `interval_percent` its 95 % confidence interval.
  `agent_cpu_percent` is the CPU time of the agent's processes, in percent of one core, while its ranks train.
- `memory`: in MiB, while the ranks train. `agent` is the agent and its guardian, and `rank` is what each rank adds: its
  wrapper, and the hook in the rank's Python, measured with a rank that imports nothing. The proportional set size (PSS)
  of these processes counts memory that several processes share once.
- `start`: seconds until the first line of a script that imports nothing, from the command Start, or without the agent
  from the first fork. The last rank counts. `added_seconds` is the difference of the medians.

Prints one JSON line.
"""

import argparse
import json
import math
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version as installed
from pathlib import Path

from muster.collector.heartbeat import MIN_HEARTBEAT_SECONDS
from muster.distribution import get_version
from muster_worker.contract.schema import CommandKind, Launcher
from support.agent_world import AgentWorld

TRAIN = """
import os, pathlib, sys, time
import torch
import torch.distributed as dist

steps, folder, rank = int(sys.argv[1]), pathlib.Path(sys.argv[2]), os.environ["RANK"]
torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo")
network = torch.nn.Sequential(*[torch.nn.Linear(384, 384) for _ in range(4)])
model = torch.nn.parallel.DistributedDataParallel(network)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
batch = torch.randn(96, 384)

def train(count):
    for _ in range(count):
        optimizer.zero_grad()
        loss = (model(batch) - batch).pow(2).mean()
        loss.backward()
        optimizer.step()

train(50)
turns, results = os.open(folder / f"turns-{rank}", os.O_RDONLY), os.open(folder / f"results-{rank}", os.O_WRONLY)
while os.read(turns, 1):
    dist.barrier()
    began = time.monotonic()
    train(steps)
    os.write(results, f"{time.monotonic() - began}\\n".encode())
dist.destroy_process_group()
"""

BEGIN = """
import time
now = time.time()
import os, pathlib, sys
folder = pathlib.Path(sys.argv[2])
new = folder / f"new-{os.environ['RANK']}"
new.write_text(f"{now!r} {os.getpid()}")
new.rename(folder / f"began-{os.environ['RANK']}")
while not (folder / "leave").exists():
    time.sleep(0.05)
"""

WAIT_SECONDS = 120.0


@dataclass(frozen=True)
class Shape:
    """The ranks that are measured."""

    ranks: int
    steps: int
    launcher: str = Launcher.DIRECT


@dataclass(frozen=True)
class Run:
    """A run of all ranks. `agent` is the guardian's process id; 0 without an agent. `started_at` is Unix time."""

    folder: Path
    started_at: float
    agent: int = 0

    def wait_for(self, names: Sequence[str]) -> None:
        """Wait until the ranks have written these files."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not all((self.folder / name).exists() for name in names):
            if time.monotonic() > deadline:
                raise SystemExit(f"the ranks have not written {', '.join(names)} in {WAIT_SECONDS:.0f} s")
            time.sleep(0.02)


Arm = Callable[[Path, str, Shape], AbstractContextManager[Run]]


@contextmanager
def run_with_agent(folder: Path, script: str, shape: Shape) -> Iterator[Run]:
    """Run the ranks under an agent, until the end of the context."""
    with AgentWorld(folder) as world:
        world.collector.heartbeat_seconds = MIN_HEARTBEAT_SECONDS
        command = (sys.executable, world.write_script(script), str(shape.steps), str(folder))
        world.make_plan(*command, procs=shape.ranks, launcher=shape.launcher)
        agent = world.start_agent()
        world.wait(0, lambda report: report.port is not None)
        started_at = time.time()
        world.send(CommandKind.START)
        yield Run(folder, started_at, agent.pid)
        (folder / "leave").touch()
        world.wait_ended()
        world.leave()


@contextmanager
def run_alone(folder: Path, script: str, shape: Shape) -> Iterator[Run]:
    """Start the ranks from this process, and run them until the end of the context."""
    (folder / "train.py").write_text(script)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    program = [str(folder / "train.py"), str(shape.steps), str(folder)]
    world = {"WORLD_SIZE": str(shape.ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    starts = [([sys.executable, *program], {**world, "RANK": str(rank)}) for rank in range(shape.ranks)]
    if shape.launcher == Launcher.TORCHRUN:
        torchrun = [str(Path(sys.executable).with_name("torchrun")), f"--nproc-per-node={shape.ranks}"]
        starts = [([*torchrun, "--standalone", *program], {})]
    started_at = time.time()
    processes = [
        subprocess.Popen(command, env={**os.environ, **variables}, cwd=folder) for command, variables in starts
    ]
    try:
        yield Run(folder, started_at)
        (folder / "leave").touch()
        for process in processes:
            process.wait(WAIT_SECONDS)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def list_children(pid: int) -> list[int]:
    """Return the children of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def read_memory(pid: int, name: str) -> float:
    """Return a process's Pss or Rss in MiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"process {pid} has no {name}")


def read_cpu_seconds(pids: Sequence[int]) -> float:
    """Return the CPU time of processes, without that of their children."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def list_agent_processes(guardian: int) -> tuple[list[int], list[int]]:
    """Return the processes of the agent, and the wrappers of the ranks."""
    (agent,) = list_children(guardian)
    return [guardian, agent], list_children(agent)


class Turns:
    """Lets the ranks of one group train for some steps."""

    def __init__(self, folder: Path, ranks: int) -> None:
        # Opening a pipe waits until the rank opens it.
        self._pipes = [
            (os.open(folder / f"turns-{rank}", os.O_WRONLY), (folder / f"results-{rank}").open(encoding="ascii"))
            for rank in range(ranks)
        ]

    def train(self) -> float:
        """Let the ranks train; return the seconds of the slowest one."""
        for turns, _ in self._pipes:
            os.write(turns, b"1")
        return max(float(results.readline()) for _, results in self._pipes)

    def close(self) -> None:
        """Let the ranks end."""
        for turns, results in self._pipes:
            os.close(turns)
            results.close()


def make_pipes(folder: Path, ranks: int) -> Path:
    """Create the pipes of a group in its folder; return the folder."""
    folder.mkdir()
    for rank in range(ranks):
        os.mkfifo(folder / f"turns-{rank}")
        os.mkfifo(folder / f"results-{rank}")
    return folder


def compute_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the median: by the binomial distribution, so without assumptions."""
    ordered, margin = sorted(values), 0.98 * math.sqrt(len(values))
    return ordered[max(0, math.floor(len(values) / 2 - margin))], ordered[
        min(len(values) - 1, math.ceil(len(values) / 2 + margin))
    ]


def measure_steps(shape: Shape, pairs: int) -> tuple[dict[str, object], dict[str, float]]:
    """Train with and without the agent in turns; return the figures about steps, and about the agent's memory."""
    rates: dict[str, list[float]] = {"alone": [], "agent": []}
    cpu, trained = 0.0, 0.0
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folders = {arm: make_pipes(Path(name, arm), shape.ranks) for arm in ARMS}
        runs = {arm: stack.enter_context(start(folders[arm], TRAIN, shape)) for arm, start in ARMS.items()}
        groups = {arm: Turns(folder, shape.ranks) for arm, folder in folders.items()}
        for group in groups.values():
            stack.callback(group.close)
        agent, wrappers = list_agent_processes(runs["agent"].agent)
        for pair in range(2 * pairs):
            # The order alternates: alone, agent, agent, alone, ...
            arm = "alone" if pair % 4 in (0, 3) else "agent"
            for pid in (*agent, *wrappers):
                os.kill(pid, signal.SIGCONT if arm == "agent" else signal.SIGSTOP)
            used = read_cpu_seconds([*agent, *wrappers])
            seconds = groups[arm].train()
            rates[arm].append(shape.steps / seconds)
            if arm == "agent":
                cpu, trained = cpu + read_cpu_seconds([*agent, *wrappers]) - used, trained + seconds
        for pid in (*agent, *wrappers):
            os.kill(pid, signal.SIGCONT)
        memory = {
            "agent": round(sum(read_memory(pid, "Pss") for pid in agent), 1),
            "agent_process_rss": round(read_memory(agent[1], "Rss"), 1),
            "rank_wrapper": round(statistics.mean(read_memory(pid, "Pss") for pid in wrappers), 1),
        }
    changes = [100 * (own / alone - 1) for own, alone in zip(rates["agent"], rates["alone"], strict=True)]
    steps: dict[str, object] = {
        "per_second": {arm: round(statistics.median(values), 2) for arm, values in rates.items()},
        "change_percent": round(statistics.median(changes), 2),
        "interval_percent": [round(bound, 2) for bound in compute_interval(changes)],
        "agent_cpu_percent": round(100 * cpu / trained, 2),
    }
    return steps, memory


def measure_start(shape: Shape, starts: int) -> tuple[dict[str, object], float]:
    """Start a small script with and without the agent in turns.

    Return the figures about the start, and the MiB by which the memory of a rank's Python differs.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ARMS}
    memory: dict[str, list[float]] = {name: [] for name in ARMS}
    for _ in range(starts):
        for name, arm in ARMS.items():
            with tempfile.TemporaryDirectory() as folder, arm(Path(folder), BEGIN, shape) as run:
                files = [f"began-{rank}" for rank in range(shape.ranks)]
                run.wait_for(files)
                lines = [(run.folder / file).read_text().split() for file in files]
                seconds[name].append(max(float(began) for began, _ in lines) - run.started_at)
                memory[name].append(statistics.mean(read_memory(int(pid), "Pss") for _, pid in lines))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    start = {
        "seconds": {name: round(value, 3) for name, value in medians.items()},
        "added_seconds": round(medians["agent"] - medians["alone"], 3),
    }
    return start, statistics.median(memory["agent"]) - statistics.median(memory["alone"])


ARMS: dict[str, Arm] = {"alone": run_alone, "agent": run_with_agent}


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=150)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--torchrun-starts", type=int, default=6)
    parser.add_argument("--ranks", type=int, default=os.cpu_count())
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    shape = Shape(options.ranks, options.steps)
    start, hook_mib = measure_start(shape, options.starts)
    torchrun_start, _ = measure_start(replace(shape, launcher=Launcher.TORCHRUN), options.torchrun_starts)
    steps, memory = measure_steps(shape, options.pairs)
    print(
        json.dumps(
            {
                "benchmark": "agent",
                "versions": {"muster": get_version(), "python": platform.python_version(), "torch": installed("torch")},
                "settings": {**vars(options), "heartbeat_seconds": MIN_HEARTBEAT_SECONDS, "cores": os.cpu_count()},
                "steps": steps,
                "memory_mib": {
                    **memory,
                    "rank_hook": round(hook_mib, 1),
                    "rank": round(memory["rank_wrapper"] + max(0.0, hook_mib), 1),
                },
                "start": {"direct": start, "torchrun": torchrun_start},
            }
        )
    )


if __name__ == "__main__":
    main()
