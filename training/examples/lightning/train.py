"""Train a small classifier with Lightning's Trainer. It contains nothing for muster, and downloads nothing."""

import argparse
import os

import lightning.pytorch as lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES = 16
CLASSES = 4


def parse_arguments() -> argparse.Namespace:
    """Parse the hyperparameters, which are --name value."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=16, help="samples per step on each rank")
    parser.add_argument("--lr", type=float, default=1e-2)
    return parser.parse_args()


class Classifier(lightning.LightningModule):  # type: ignore[misc]  # Lightning is not in .venv
    """A perceptron that tells which of a point's first features is the greatest."""

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.lr = lr
        self.layers = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))

    def training_step(self, batch: list[Tensor], _index: int) -> Tensor:
        """Return a batch's loss."""
        points, classes = batch
        loss = nn.functional.cross_entropy(self.layers(points), classes)
        if (self.global_step + 1) % 10 == 0:
            mean = self.all_gather(loss.detach()).mean()
            self.print(f"step={self.global_step + 1} loss={mean.item():.5f}", flush=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def main() -> None:
    """Train on random data."""
    options = parse_arguments()
    lightning.seed_everything(0)
    ranks, ranks_per_node = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
    points = torch.randn(options.steps * options.batch_size * ranks, FEATURES)
    data = TensorDataset(points, points[:, :CLASSES].argmax(dim=1))
    trainer = lightning.Trainer(
        num_nodes=ranks // ranks_per_node,
        devices=ranks_per_node,
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(Classifier(options.lr), DataLoader(data, batch_size=options.batch_size))


if __name__ == "__main__":
    main()
