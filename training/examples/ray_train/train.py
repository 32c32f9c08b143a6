"""Train a small classifier with Ray Train. The data is random, so it downloads nothing.

The command runs once on each node. Node 0 starts Ray's head and the training, and the other nodes join it.
"""

import argparse
import os
import socket
import subprocess
import sys
import time

import ray
import ray.train.torch
import torch
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer
from torch import nn

FEATURES = 16
CLASSES = 4

JOIN_SECONDS = 300
"""How long the nodes wait for each other."""


def parse_arguments() -> argparse.Namespace:
    """Parse the hyperparameters, which are --name value."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=16, help="samples per step on each worker")
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--workers-per-node", type=int, default=1)
    return parser.parse_args()


def train(options: dict[str, float]) -> None:
    """Train on one worker of Ray. Ray sends what it prints to node 0."""
    rank = ray.train.get_context().get_world_rank()
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    model = ray.train.torch.prepare_model(model)
    device = ray.train.torch.get_device()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options["lr"])
    for step in range(1, int(options["steps"]) + 1):
        points = torch.randn(int(options["batch_size"]), FEATURES, device=device)
        # A point's class is the greatest of its first features.
        loss = nn.functional.cross_entropy(model(points), points[:, :CLASSES].argmax(dim=1))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % 10 == 0:
            mean = loss.detach().clone()
            torch.distributed.all_reduce(mean)
            if rank == 0:
                print(f"step={step} loss={mean.item() / torch.distributed.get_world_size():.5f}", flush=True)


def lead(options: argparse.Namespace, nodes: int) -> None:
    """Start Ray's head in this process, wait for the other nodes, and train on all of them."""
    os.environ["RAY_GCS_SERVER_PORT"] = os.environ["MASTER_PORT"]
    cpus = options.workers_per_node
    ray.init(num_cpus=cpus, include_dashboard=False, _node_ip_address=os.environ["MASTER_ADDR"])
    give_up_at = time.monotonic() + JOIN_SECONDS
    while len(ray.nodes()) < nodes:
        if time.monotonic() > give_up_at:
            sys.exit(f"{len(ray.nodes())} of {nodes} nodes have joined Ray")
        time.sleep(0.5)
    scaling = ScalingConfig(
        num_workers=nodes * options.workers_per_node, use_gpu=torch.cuda.is_available(), placement_strategy="SPREAD"
    )
    TorchTrainer(train, train_loop_config=vars(options), scaling_config=scaling).fit()
    ray.shutdown()


def join(workers_per_node: int) -> None:
    """Run Ray on this node until the head ends."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    wait_for_head(address, port)
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--address={address}:{port}"]
    command += [f"--num-cpus={workers_per_node}", "--disable-usage-stats"]
    subprocess.run(command, check=False, env={**os.environ, "RAY_gcs_rpc_server_reconnect_timeout_s": "5"})


def wait_for_head(address: str, port: int) -> None:
    """Wait until Ray's head accepts connections."""
    give_up_at = time.monotonic() + JOIN_SECONDS
    while True:
        try:
            socket.create_connection((address, port), timeout=5).close()
        except OSError as error:
            if time.monotonic() > give_up_at:
                sys.exit(f"Ray's head at {address}:{port} does not answer: {error}")
            time.sleep(0.5)
        else:
            return


def main() -> None:
    """Lead on node 0, and join on the other nodes."""
    options = parse_arguments()
    if os.environ["NODE_RANK"] == "0":
        lead(options, int(os.environ["PET_NNODES"]))
    else:
        join(options.workers_per_node)


if __name__ == "__main__":
    main()
