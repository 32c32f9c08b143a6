"""Train a small classifier with Accelerate. The data is random, so it downloads nothing."""

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

try:
    from muster_worker import report
except ImportError:  # started without muster
    report = lambda **_: None  # noqa: E731

FEATURES = 16
CLASSES = 4


def parse_arguments() -> argparse.Namespace:
    """Parse the hyperparameters, which are --name value."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=16, help="samples per step on each rank")
    parser.add_argument("--lr", type=float, default=1e-2)
    return parser.parse_args()


def make_data(samples: int) -> TensorDataset:
    """Return random points; each one's class is the greatest of its first features."""
    points = torch.randn(samples, FEATURES, generator=torch.Generator().manual_seed(0))
    return TensorDataset(points, points[:, :CLASSES].argmax(dim=1))


def main() -> None:
    """Train, and print the loss of every tenth step."""
    options = parse_arguments()
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    # Accelerate gives each rank every n-th batch.
    samples = options.steps * options.batch_size * accelerator.num_processes
    loader = DataLoader(make_data(samples), batch_size=options.batch_size)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for step, (points, classes) in enumerate(loader, start=1):
        loss = nn.functional.cross_entropy(model(points), classes)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        report(step=step, total_steps=options.steps)
        if step % 10 == 0:
            mean = accelerator.reduce(loss.detach(), reduction="mean")
            accelerator.print(f"step={step} loss={mean.item():.5f}", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
