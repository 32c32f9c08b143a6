"""Prints a rank's view of its GPU: an all-reduce, some steps of mixed precision, its variables. `--device cpu` runs it
without.

Prints one line of JSON after SEEN.
"""

import argparse
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 30
VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "NCCL_SOCKET_IFNAME",
    "GLOO_SOCKET_IFNAME",
    "SM_NUM_GPUS",
    "SM_NETWORK_INTERFACE_NAME",
)


def main() -> None:
    """Join the other ranks, and print the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    device = device_of(parser.parse_args().device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    total = torch.ones(1024, device=device) * (dist.get_rank() + 1)
    dist.all_reduce(total)
    losses = {str(precision).removeprefix("torch."): train(device, precision) for precision in precisions(device)}
    seen = {
        "rank": dist.get_rank(),
        "world": dist.get_world_size(),
        "backend": dist.get_backend(),
        "device": str(device),
        "sum": sorted(set(total.tolist())),
        "losses": losses,
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }
    # In one write, because the ranks share a log.
    sys.stdout.write(f"SEEN {json.dumps(seen)}\n")
    sys.stdout.flush()
    dist.destroy_process_group()


def device_of(kind: str) -> torch.device:
    """Return this rank's device."""
    if kind == "cpu":
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device


def precisions(device: torch.device) -> list[torch.dtype]:
    """Return the precisions to compute in: all that GPUs support; a CPU would be slow with the others."""
    return [torch.float16, torch.bfloat16] if device.type == "cuda" else [torch.bfloat16]


def train(device: torch.device, precision: torch.dtype) -> tuple[float, float]:
    """Return the first and the last loss of a model that all ranks train together."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    # fp16's small gradients vanish unless the loss is scaled up; bf16 has the range.
    scaler = torch.amp.GradScaler(device.type, enabled=precision == torch.float16)
    inputs = torch.randn(64, 16, device=device)
    labels = inputs.sum(dim=1, keepdim=True)
    losses = []
    for _ in range(STEPS):
        with torch.autocast(device.type, precision):
            outputs = model(inputs)
            assert outputs.dtype == precision, outputs.dtype
            loss = nn.functional.mse_loss(outputs.float(), labels)
        optimizer.zero_grad()
        torch.autograd.backward(scaler.scale(loss))
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses[0], losses[-1]


if __name__ == "__main__":
    main()
