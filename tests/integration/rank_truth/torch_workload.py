"""A rank that waits in torch's all_reduce until a peer ends: `torch_workload.py os-exit|wait [--root-cause RANK]`."""

import argparse
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("behaviour", choices=("os-exit", "wait"))
parser.add_argument("--root-cause", type=int, default=0)
arguments = parser.parse_args()

dist.init_process_group("gloo")
rank = dist.get_rank()
parameter = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([parameter], lr=0.1)
for _ in range(3):
    parameter.grad = torch.ones(1)
    dist.all_reduce(parameter.grad)
    optimizer.step()
if arguments.behaviour == "os-exit" and rank == arguments.root_cause:
    os._exit(3)
print(f"rank {rank} goes on as process {os.getpid()}", flush=True)
while True:
    dist.all_reduce(torch.ones(1))
