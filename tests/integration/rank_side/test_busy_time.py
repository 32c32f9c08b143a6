"""The busy time of real ranks that train together over gloo: the slow one has more of it, wherever it is slow."""

import socket
import sys

import pytest

from fakes.rank_side_agent import Agent

START = """
import os, time, torch, torch.distributed as dist
torch.set_num_threads(1)
rank = int(os.environ["RANK"])
def be_slow():
    if rank == 1:
        time.sleep(0.4)
class SlowBackward(torch.autograd.Function):
    @staticmethod
    def forward(context, x): return x
    @staticmethod
    def backward(context, gradient):
        be_slow()
        return gradient
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
inputs = torch.ones(2, 4, requires_grad=True)
def train(model, prepare=lambda: None, forward=lambda x: x, reduce=lambda: None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        prepare()
        model(forward(inputs)).sum().backward()
        reduce()
        optimizer.step()
        optimizer.zero_grad()
"""
GROUP = "dist.init_process_group('gloo')\n"
DDP = f"{GROUP}model = torch.nn.parallel.DistributedDataParallel(model)\n"

PROGRAMS = {
    "slow data with DistributedDataParallel": f"{DDP}train(model, prepare=be_slow)",
    "slow backward with DistributedDataParallel": f"{DDP}train(model, forward=SlowBackward.apply)",
    "own collectives": f"""{GROUP}
def reduce():
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
train(model, prepare=be_slow, reduce=reduce)
""",
    "asynchronous collectives": f"""{GROUP}
def reduce():
    works = [dist.all_reduce(parameter.grad, async_op=True) for parameter in model.parameters()]
    for work in works:
        work.wait()
train(model, prepare=be_slow, reduce=reduce)
""",
    "fully sharded": f"""{GROUP}
from torch.distributed.fsdp import fully_shard
train(fully_shard(model), prepare=be_slow)
""",
    "ranks that do not wait for each other": "train(model, prepare=be_slow)",
}


# Each program needs ten seconds and two Pythons that import torch.
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_only_the_slow_rank_is_busy_for_long(agent: Agent, name: str) -> None:
    (agent.folder / "train.py").write_text(START + PROGRAMS[name])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for rank in ("0", "1"):
        agent.start(
            sys.executable,
            "train.py",
            RANK=rank,
            LOCAL_RANK=rank,
            WORLD_SIZE="2",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
        )
    agent.wait_until(lambda: len(agent.heard) == 2 and all(heard.progress.busy_seconds for heard in agent.heard))
    busy = {heard.hello.rank: heard.progress.busy_seconds or 0.0 for heard in agent.heard}
    assert busy[1] >= 0.4
    assert busy[1] > 1.5 * busy[0]


@pytest.mark.long
def test_the_hooks_change_nothing_for_the_script(agent: Agent) -> None:
    script = """
import copy, io, pickle, torch, torch.distributed as dist
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
copied = copy.deepcopy((model, optimizer))
torch.save(model, io.BytesIO())
print(len(pickle.loads(pickle.dumps(optimizer)).param_groups))
assert dist.Work.wait.__name__ == "wait"
# an error in a backward pass, and the next step
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(context, x): return x.clone()
    @staticmethod
    def backward(context, gradient): raise RuntimeError("expected")
try:
    (model(torch.ones(1, 2)) + Fails.apply(model.weight).sum()).sum().backward()
except RuntimeError as error:
    print(error)
for _ in range(2):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
compiled = torch.compile(model, backend="aot_eager")
for _ in range(3):
    compiled(torch.ones(1, 2)).sum().backward()
    optimizer.step()
print(torch._dynamo.utils.counters["stats"]["unique_graphs"])
"""
    (agent.folder / "train.py").write_text(script)
    heard = agent.run_rank(sys.executable, "train.py")
    assert (heard.errors, heard.text) == ("", "1\nexpected\n1\n")
    assert heard.progress.step == 8
