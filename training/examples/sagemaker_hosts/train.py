"""A typical training script for SageMaker: it reads hosts, data and hyperparameters from SM_* variables.

Each host runs it once. The hosts average their gradients themselves, with one all-reduce per step over gloo.
"""

import json
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn
from PIL import Image
from torch import Tensor, nn


def read_images(folder: Path) -> tuple[Tensor, Tensor]:
    """Read the images FOLDER/<class>/*.png, whose classes are numbers."""
    paths = sorted(folder.glob("*/*.png"))
    if not paths:
        raise SystemExit(f"{folder}: no images <class>/*.png in there")
    images = np.stack([np.asarray(Image.open(path).convert("L"), dtype=np.float32) / 255 for path in paths])
    return torch.from_numpy(images).flatten(start_dim=1), torch.tensor([int(path.parent.name) for path in paths])


def average_gradients(model: nn.Module) -> None:
    """Replace each gradient by its mean over all hosts, as DistributedDataParallel does."""
    # One message for all gradients: many small messages would be slow.
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    flat_gradients = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat_gradients)
    flat_gradients /= dist.get_world_size()
    for gradient, mean in zip(
        gradients, torch.split(flat_gradients, [gradient.numel() for gradient in gradients]), strict=True
    ):
        gradient.copy_(mean.view_as(gradient))


def join_hosts(hosts: list[str], current_host: str) -> None:
    """Join the other hosts with a rendezvous on the first one, whose name resolves on all hosts."""
    os.environ.setdefault("MASTER_ADDR", hosts[0])
    os.environ.setdefault("MASTER_PORT", "7777")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", os.environ["SM_NETWORK_INTERFACE_NAME"])
    dist.init_process_group("gloo", rank=hosts.index(current_host), world_size=len(hosts))


def train(hyperparameters: dict[str, float], images: Tensor, labels: Tensor) -> nn.Module:
    """Train each host on every world-th image."""
    rank, world = dist.get_rank(), dist.get_world_size()
    batch_size = int(hyperparameters.get("batch-size", 32))
    torch.manual_seed(0)  # the same initial weights on every host
    model = nn.Sequential(nn.Linear(images.shape[1], 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=hyperparameters.get("learning-rate", 0.1), momentum=0.9)
    # Each host has the number of batches of the smallest share; otherwise a host would wait for the others for ever.
    steps = len(images) // world // batch_size
    for epoch in range(int(hyperparameters.get("epochs", 6))):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))[rank::world]
        for step, batch in enumerate(torch.split(order, batch_size)[:steps]):
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            average_gradients(model)
            optimizer.step()
            if rank == 0 and step % 10 == 0:
                print(f"epoch={epoch} step={epoch * steps + step} loss={loss.item():.5f}", flush=True)
    return model


def main() -> None:
    """Join the hosts, train, and save the model on the first one."""
    hosts, current_host = json.loads(os.environ["SM_HOSTS"]), os.environ["SM_CURRENT_HOST"]
    join_hosts(hosts, current_host)
    model = train(json.loads(os.environ["SM_HPS"]), *read_images(Path(os.environ["SM_CHANNEL_TRAIN"])))
    if current_host == hosts[0]:
        torch.save(model.state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "model.pt")
    # Optimizers import torch.distributed.nn, whose functions keep a reference to the current group: gloo's threads
    # would stay alive and sometimes abort the process at its end. So import it before the group exists.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
