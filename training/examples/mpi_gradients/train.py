"""Train an image classifier as Horovod scripts do: one process a device, gradients averaged by an all-reduce of MPI.

    Horovod                                           here
    hvd.init(), hvd.rank(), hvd.size()                MPI.COMM_WORLD and its Get_rank, Get_size
    hvd.local_rank()                                  LOCAL_RANK
    hvd.broadcast_parameters(model.state_dict(), 0)   broadcast_parameters(world, model)
    hvd.DistributedOptimizer(optimizer, ...)          average_gradients(world, model) before optimizer.step()

A script that imports horovod.torch runs under `launcher: {mpi: {}}` as it is, in an image that has Horovod.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import torch
from mpi4py import MPI
from PIL import Image
from torch import Tensor, nn


def parse_arguments() -> argparse.Namespace:
    """Parse the hyperparameters, which are --name value. The folders are in SM_* variables, as on SageMaker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR"))
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=16, help="images of a step, on each rank")
    parser.add_argument(
        "--lr", type=float, default=0.05, help="learning rate of one rank; it is multiplied by the number of ranks"
    )
    options = parser.parse_args()
    if options.train is None:
        parser.error("--train is needed where SM_CHANNEL_TRAIN is unset")
    return options


def read_images(folder: Path) -> tuple[Tensor, Tensor]:
    """Read the images FOLDER/<class>/*.png, whose classes are numbers."""
    paths = sorted(folder.glob("*/*.png"))
    if not paths:
        raise SystemExit(f"{folder}: no images <class>/*.png in there")
    images = np.stack([np.asarray(Image.open(path).convert("L"), dtype=np.float32) / 255 for path in paths])
    return torch.from_numpy(images).flatten(start_dim=1), torch.tensor([int(path.parent.name) for path in paths])


def broadcast_parameters(world: MPI.Intracomm, model: nn.Module) -> None:
    """Give every rank the weights of rank 0."""
    for parameter in model.state_dict().values():
        values = parameter.cpu().numpy()
        world.Bcast([values, MPI.FLOAT], root=0)
        parameter.copy_(torch.from_numpy(values))


def average_gradients(world: MPI.Intracomm, model: nn.Module) -> None:
    """Replace each gradient by its mean over all ranks."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    # One message for all gradients: many small messages would be slow. float32 is MPI.FLOAT.
    flat_gradients = torch.cat([gradient.flatten() for gradient in gradients]).cpu().numpy()
    world.Allreduce(MPI.IN_PLACE, [flat_gradients, MPI.FLOAT], op=MPI.SUM)
    means = torch.split(
        torch.from_numpy(flat_gradients / world.Get_size()), [gradient.numel() for gradient in gradients]
    )
    for gradient, mean in zip(gradients, means, strict=True):
        gradient.copy_(mean.view_as(gradient))


def train(world: MPI.Intracomm, args: argparse.Namespace, images: Tensor, labels: Tensor) -> nn.Module:
    """Train each rank on every world-th image."""
    rank, size = world.Get_rank(), world.Get_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    model = nn.Sequential(nn.Linear(images.shape[1], 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    broadcast_parameters(world, model)
    # A step of all ranks uses `size` times the images, so it may be larger.
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * size, momentum=0.9)
    # Each rank has the number of batches of the smallest share; otherwise a rank would wait for the others for ever.
    steps = len(images) // size // args.batch_size
    for epoch in range(args.epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))[rank::size]
        for step, batch in enumerate(torch.split(order, args.batch_size)[:steps]):
            loss = nn.functional.cross_entropy(model(images[batch].to(device)), labels[batch].to(device))
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            average_gradients(world, model)
            optimizer.step()
            if rank == 0 and step % 10 == 0:
                print(f"epoch={epoch} step={epoch * steps + step} loss={loss.item():.5f}", flush=True)
    return model


def main() -> None:
    """Train, compare the ranks' weights, save the model once."""
    args = parse_arguments()
    world = MPI.COMM_WORLD
    model = train(world, args, *read_images(args.train))
    total = float(sum(parameter.double().sum() for parameter in model.state_dict().values()))
    if world.allreduce(total, op=MPI.MIN) != world.allreduce(total, op=MPI.MAX):
        raise SystemExit("the ranks' weights differ")
    if world.Get_rank() == 0 and args.model_dir:
        args.model_dir.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), args.model_dir / "model.pt")


if __name__ == "__main__":
    main()
