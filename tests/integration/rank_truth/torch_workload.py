"""A rank that waits in torch's all_reduce until a peer ends: `torch_workload.py os-exit|wait [--root-cause RANK]`."""

import argparse
import os

import torch
import torch.distributed as dist

import muster_worker

parser = argparse.ArgumentParser()
parser.add_argument("behaviour", choices=("os-exit", "wait"))
parser.add_argument("--root-cause", type=int, default=0)
arguments = parser.parse_args()

dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(1, 4):
    dist.all_reduce(torch.ones(1))
    # Not an optimizer: the first one of a process imports torch._dynamo, which takes twice as long as torch itself.
    muster_worker.report(step=step)
if arguments.behaviour == "os-exit" and rank == arguments.root_cause:
    os._exit(3)
print(f"rank {rank} goes on as process {os.getpid()}", flush=True)
while True:
    dist.all_reduce(torch.ones(1))
