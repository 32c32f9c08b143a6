"""Steps and stacks of ranks that use torch."""

import os
import signal
import socket
import sys

import pytest

from fakes.rank_side_agent import Agent, Heard
from muster_worker.rank_group import activity, stack_dump

# the code of a program after START, and the steps that it counts
PROGRAMS = {
    "generator and discriminator": (
        """
p = torch.optim.Adam(m.parameters())
for _ in range(10): step(o); step(p)
""",
        (10,),
    ),
    "gradient accumulation": (
        """
for micro in range(12):
    m(x).sum().backward()
    if micro % 4 == 3: o.step(); o.zero_grad()
""",
        (3,),
    ),
    "an engine with a wrapped optimizer": (
        """
class Wrapper:
    def __init__(self, inner): self.inner = inner
    def step(self): self.inner.step()
class Engine:
    def __init__(self, optimizer): self.optimizer, self.micro = Wrapper(optimizer), 0
    def step(self):
        self.micro += 1
        if self.micro % 2 == 0: self.optimizer.step()
e = Engine(o)
for _ in range(10): m(x).sum().backward(); e.step()
""",
        (5,),
    ),
    "two phases": (
        """
for _ in range(10): step(o)
del o
q = torch.optim.AdamW(m.parameters())
for _ in range(5): step(q)
""",
        (14, 15),  # the new optimizer's first step joins the last round, unless it got the old one's address in memory
    ),
    "LBFGS": (
        """
q = torch.optim.LBFGS(m.parameters())
for _ in range(3): q.step(lambda: m(x).sum())
""",
        (3,),
    ),
    "reloaded": (
        """
import importlib, sys
module = importlib.reload(sys.modules["torch.optim.optimizer"])
class Mine(module.Optimizer):
    def step(self): pass
q = Mine(m.parameters(), {})
for _ in range(4): q.step()
""",
        (4,),
    ),
    "DataLoader with workers": (
        """
class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        import muster_worker
        muster_worker.report(step=99)
        w = torch.nn.Linear(2, 1)
        v = torch.optim.SGD(w.parameters(), lr=.1)
        for _ in range(10): v.step()
        return torch.ones(2)
for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2): step(o)
""",
        (4,),
    ),
    "skipped by the gradient scaler": (
        """
s = torch.amp.GradScaler("cpu")
for bad in (False, True, False):
    o.zero_grad()
    s.scale(m(x).sum() * (float("inf") if bad else 1)).backward()
    s.step(o)
    s.update()
""",
        (2,),
    ),
}
START = """
import torch
m = torch.nn.Linear(2, 1); x = torch.ones(1, 2); o = torch.optim.SGD(m.parameters(), lr=.1)
def step(optimizer):
    m(x).sum().backward(); optimizer.step(); optimizer.zero_grad()
"""


# Each imports torch anew, since counting begins with a process.
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_steps_are_counted(agent: Agent, name: str) -> None:
    text, expected = PROGRAMS[name]
    (agent.folder / "train.py").write_text(START + text)
    heard = agent.run_rank(sys.executable, "train.py")
    assert heard.errors == ""
    seen = heard.progress
    assert seen.step in expected
    assert seen.stepped_at is not None
    assert heard.started.at < seen.stepped_at


def test_a_rank_with_torch_is_seen(agent: Agent) -> None:
    """The hook leaves no trace on the modules, counts the steps of an optimizer, and sees what the rank waits for.

    One rank shows all of it, because an import of torch takes seconds.
    """
    script = """
import importlib.util, inspect, sys
spec = importlib.util.find_spec("torch.optim.optimizer")
import torch
module = sys.modules["torch.optim.optimizer"]
print(type(spec.loader).__name__, type(module.__loader__).__name__, vars(module.__loader__).keys())
print(module.__spec__.loader is module.__loader__, len(inspect.getsource(module.Optimizer)) > 1000)
m = torch.nn.Linear(2, 1); x = torch.ones(1, 2); o = torch.optim.SGD(m.parameters(), lr=.1)
for _ in range(20): m(x).sum().backward(); o.step(); o.zero_grad()
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        import time
        print("ready", flush=True)
        time.sleep(600)
for batch in torch.utils.data.DataLoader(Slow(), num_workers=1): pass
"""
    (agent.folder / "train.py").write_text(script)
    agent.start(sys.executable, "train.py")
    heard = agent.wait_for_output("ready\n")
    assert _activities(agent, {3: heard}, {3: "loading data"}) == {3: "loading data"}
    imports = "SourceFileLoader SourceFileLoader dict_keys(['name', 'path'])\nTrue True\n"
    assert (heard.text, heard.errors) == (f"{imports}ready\n", "")
    assert heard.progress.step == 20
    assert heard.progress.stepped_at is not None
    assert heard.started.at < heard.progress.stepped_at


def test_a_torch_without_step_hooks_says_so(agent: Agent) -> None:
    package = agent.folder / "torch" / "optim"
    package.mkdir(parents=True)
    for name in ("../__init__.py", "__init__.py", "optimizer.py"):
        (package / name).touch()
    heard = agent.run_rank(sys.executable, "-c", "import torch.optim.optimizer", PYTHONPATH=str(agent.folder))
    assert (heard.errors, heard.progress.step) == ("", None)
    assert heard.progress.flags == 1 | 4


def _gang(agent: Agent, script: str) -> dict[int, Heard]:
    """Two ranks of one script, when both have printed a line."""
    (agent.folder / "train.py").write_text(script)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for rank in (0, 1):
        agent.start(
            sys.executable,
            "train.py",
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE="2",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
            OMP_NUM_THREADS="1",
        )
    agent.wait_until(lambda: len(agent.heard) == 2 and all("ready\n" in heard.text for heard in agent.heard))
    return {heard.hello.rank: heard for heard in agent.heard}


def _activities(agent: Agent, ranks: dict[int, Heard], wanted: dict[int, str]) -> dict[int, str | None]:
    """Return the ranks' activities, requested until they are `wanted`: a ready rank may not hang yet."""
    visited: dict[int, str | None] = {}

    def as_wanted() -> bool:
        dumps = stack_dump.capture_stack_dumps({rank: heard.hello.progress for rank, heard in ranks.items()}, 0.3)
        visited.update({rank: activity.describe_dump(dump) for rank, dump in dumps.items()})
        return visited == wanted

    agent.wait_until(as_wanted)
    return visited


IN_A_GANG = """
import sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
dist.barrier()
print("ready", flush=True)
def late():
    time.sleep(600)
if dist.get_rank() == 1:
    late()
"""


# In `make test` the ranks of integration/rank_truth/test_rank_truth.py wait in all_reduce.
@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dist.all_reduce(torch.ones(4))", "all_reduce"),
        ("dist.all_gather_object([None, None], 'x')", "all_gather_object"),
        ("model(torch.ones(1, 4)).sum().backward()", "backward"),
    ],
)
def test_who_waits_where_is_seen_from_outside(agent: Agent, text: str, expected: str) -> None:
    ranks = _gang(agent, IN_A_GANG + text)
    wanted = {0: expected, 1: "train.py:8 in late"}
    assert _activities(agent, ranks, wanted) == wanted


def test_a_program_s_own_handler_keeps_its_signal(agent: Agent) -> None:
    script = """
import os, signal, time
signal.signal(signal.SIGRTMIN + 5, lambda *_: os.write(1, b"mine\\n"))
print("ready", flush=True)
while True: time.sleep(0.05)
"""
    (agent.folder / "train.py").write_text(script)
    agent.start(sys.executable, "train.py")
    heard = agent.wait_for_output("ready\n")
    assert stack_dump.capture_stack_dumps({3: heard.hello.progress}, 0.3) == {}
    assert heard.text == "ready\n"
    os.kill(heard.started.pid, signal.SIGRTMIN + 5)
    agent.wait_for_output("mine\n")


@pytest.mark.parametrize(
    "program",
    [
        "import faulthandler; faulthandler.unregister(39)",  # SIGRTMIN + 5: back to its default, which kills
        "import os; os.closerange(3, 4096)",  # the stacks would be lost
        "import os; os.closerange(3, 4096); [os.open('other', os.O_RDWR | os.O_CREAT) for _ in range(300)]",
    ],
)
def test_a_program_that_took_the_means_away_is_left_alone(agent: Agent, program: str) -> None:
    (agent.folder / "train.py").write_text(f"{program}\nimport time\nprint('ready', flush=True)\ntime.sleep(600)")
    agent.start(sys.executable, "-X", "faulthandler", "train.py")
    heard = agent.wait_for_output("ready\n")
    assert stack_dump.capture_stack_dumps({3: heard.hello.progress}, 0.3) == {}
    assert agent.processes[0].poll() is None
    assert not (agent.folder / "other").exists() or (agent.folder / "other").read_bytes() == b""
