"""Train an image classifier on many GPUs with DistributedDataParallel; without GPUs it uses the CPUs and gloo.

Start it with muster (job.yaml), or by hand: torchrun --nproc-per-node 2 train.py --train DIR --validation DIR
"""

import argparse
import math
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn
from PIL import Image
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Subset

try:
    from muster_worker import report, stopping
except ImportError:  # started without muster
    report, stopping = (lambda **_: None), (lambda: False)


def parse_arguments() -> argparse.Namespace:
    """Parse the hyperparameters, which are --name value. The folders are in SM_* variables, as on SageMaker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--validation", type=Path, default=os.environ.get("SM_CHANNEL_VALIDATION"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR"))
    parser.add_argument("--checkpoint-dir", type=Path, default=os.environ.get("MUSTER_CHECKPOINT_DIR"))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=8, help="images per step on each rank")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--lr-decay", type=float, default=0.8, help="the learning rate's factor from epoch to epoch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=0, help="processes per rank that read images; 0: none")
    parser.add_argument("--gradient-compression", choices=["none", "fp16", "bf16", "powersgd"], default="none")
    parser.add_argument("--log-every", type=int, default=10, help="steps between two log lines")
    parser.add_argument("--require-accuracy", type=float, default=0.0, help="fail if the final accuracy is lower")
    options = parser.parse_args()
    if options.train is None or options.validation is None:
        parser.error("--train and --validation are needed where SM_CHANNEL_TRAIN and SM_CHANNEL_VALIDATION are unset")
    return options


class ImageFolder(Dataset[tuple[Tensor, int]]):
    """The images FOLDER/<class>/*.png, in the same order on every node."""

    def __init__(self, folder: Path, classes: list[str] | None = None) -> None:
        """Validation uses the classes of training, so that a missing class doesn't shift the labels."""
        self.classes = classes or sorted({path.parent.name for path in folder.glob("*/*.png")})
        self.images = [
            (path, label) for label, name in enumerate(self.classes) for path in sorted((folder / name).glob("*.png"))
        ]
        if not self.images:
            raise SystemExit(f"{folder}: no images <class>/*.png in there")

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        path, label = self.images[index]
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("L"), dtype=np.float32)
        return torch.from_numpy(pixels / 255).unsqueeze(0), label


def choose_images(images: int, seed: int, first: int, rank: int, world: int) -> list[int]:
    """Return the images that a rank still trains in an epoch, without the `first` ones, which all ranks have trained.

    The order depends on the seed only, so that an epoch can continue with another number of ranks.
    """
    order = torch.randperm(images, generator=torch.Generator().manual_seed(seed)).tolist()[first:]
    # All ranks need the same number of images, so the last ones get some of the first ones again.
    return (order * world)[: math.ceil(len(order) / world) * world][rank::world]


def build_classifier(classes: int) -> nn.Module:
    """Build a small convolutional network for images of 8 x 8 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


def compress_gradients(parallel: DistributedDataParallel, method: str) -> None:
    """Make DDP send smaller gradients: half the size with fp16 and bf16, far less with PowerSGD."""
    if method == "fp16":
        parallel.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif method == "bf16":
        parallel.register_comm_hook(None, default_hooks.bf16_compress_hook)
    elif method == "powersgd":
        # Low-rank gradients hurt while the loss still falls steeply, so PowerSGD starts after some steps. Its state is
        # different on each rank and not in the checkpoint: after a restart it waits again.
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=50)
        parallel.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


@dataclass
class Trainer:
    """One rank's part of the training."""

    args: argparse.Namespace
    device: torch.device
    model: nn.Module
    parallel: DistributedDataParallel  # the same model; its backward pass averages the gradients over all ranks
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    precision: torch.dtype
    scaler: torch.amp.GradScaler
    step: int = 0
    images: int = 0  # those of the epoch that all ranks have trained

    def train_epoch(self, epoch: int, batches: Iterable[tuple[Tensor, Tensor]]) -> bool:
        """Train on the rest of this rank's images. Rank 0 prints the loss. Return False if muster stops the ranks."""
        self.model.train()
        started_at, first = time.perf_counter(), self.images
        for inputs, labels in batches:
            with torch.autocast(self.device.type, self.precision, enabled=self.precision != torch.float32):
                outputs = self.parallel(inputs.to(self.device, non_blocking=True))
                loss = nn.functional.cross_entropy(outputs, labels.to(self.device, non_blocking=True))
            self.optimizer.zero_grad()
            torch.autograd.backward(self.scaler.scale(loss))
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.step += 1
            report(step=self.step)
            self.images += len(inputs) * dist.get_world_size()
            if dist.get_rank() == 0 and self.step % self.args.log_every == 0:
                speed = (self.images - first) / (time.perf_counter() - started_at)
                print(
                    f"epoch={epoch} step={self.step} loss={loss.item():.5f} images_per_second={speed:.0f}", flush=True
                )
            if stopping():
                return False
        self.schedule.step()
        self.images = 0
        return True

    @torch.no_grad()
    def measure_accuracy(self, batches: Iterable[tuple[Tensor, Tensor]]) -> float:
        """Return the fraction of correctly classified validation images, equal on every rank."""
        self.model.eval()
        counts = torch.zeros(2, dtype=torch.int64, device=self.device)
        for inputs, labels in batches:
            # Don't use DDP here: ranks may have different numbers of batches, and DDP's forward waits for all ranks.
            outputs = self.model(inputs.to(self.device))
            counts[0] += (outputs.argmax(dim=1) == labels.to(self.device)).sum()
            counts[1] += len(labels)
        dist.all_reduce(counts)
        return counts[0].item() / counts[1].item()

    def save_checkpoint(self, path: Path, epochs_done: int) -> None:
        """Save all state for a restart. Random states aren't needed: each epoch is seeded by its number."""
        checkpoint = {
            "epochs_done": epochs_done,
            "images": self.images,
            "step": self.step,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "scaler": self.scaler.state_dict(),
        }
        save(checkpoint, path)

    def load_checkpoint(self, path: Path) -> int:
        """Load the checkpoint if there is one. Returns its number of epochs."""
        epochs_done = 0
        if path.exists():
            checkpoint = torch.load(path, map_location=self.device, weights_only=True)
            epochs_done, self.images, self.step = checkpoint["epochs_done"], checkpoint["images"], checkpoint["step"]
            self.model.load_state_dict(checkpoint["model"])
            self.optimizer.load_state_dict(checkpoint["optimizer"])
            self.schedule.load_state_dict(checkpoint["schedule"])
            self.scaler.load_state_dict(checkpoint["scaler"])
        # Ranks that start at different steps would wait for each other for ever, so compare first.
        steps = torch.tensor([self.step, -self.step], device=self.device)
        dist.all_reduce(steps, dist.ReduceOp.MAX)
        latest, earliest = steps[0].item(), -steps[1].item()
        if latest != earliest:
            raise SystemExit(f"{path}: ranks see the steps {earliest} to {latest}; all nodes must share the folder")
        # muster then knows which steps a restart has cost.
        report(step=self.step)
        return epochs_done


def save(content: object, path: Path) -> None:
    """Write a temporary file and rename it: if a rank dies meanwhile, the last file stays intact."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save(content, partial)
    partial.replace(path)


def choose_device() -> torch.device:
    """Return the GPU of this local rank, or the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device


def choose_precision(device: torch.device) -> torch.dtype:
    """Return the precision of the computation: bf16 from the A100 on, fp16 on older GPUs, fp32 on CPUs."""
    if device.type != "cuda":
        return torch.float32
    ampere = (8, 0)
    return torch.bfloat16 if torch.cuda.get_device_capability(device) >= ampere else torch.float16


def build_trainer(args: argparse.Namespace, classes: int) -> Trainer:
    """Create the model on this rank's device, with its optimizer and schedule."""
    device = choose_device()
    precision = choose_precision(device)
    torch.manual_seed(args.seed)
    # Without device_ids, DDP uses the model's device, GPU or CPU.
    model = build_classifier(classes).to(device)
    parallel = DistributedDataParallel(model)
    compress_gradients(parallel, args.gradient_compression)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    return Trainer(
        args=args,
        device=device,
        model=model,
        parallel=parallel,
        optimizer=optimizer,
        # Depends on the epoch only, so that a job can continue with more epochs.
        schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, args.lr_decay),
        precision=precision,
        # In fp16 small gradients become 0 unless the loss is scaled. bf16 and fp32 have a larger range.
        scaler=torch.amp.GradScaler(device.type, enabled=precision == torch.float16),
    )


def train(args: argparse.Namespace) -> float | None:
    """Train for args.epochs, from the checkpoint if there is one. Returns the final accuracy; None after a stop."""
    rank, world = dist.get_rank(), dist.get_world_size()
    training = ImageFolder(args.train)
    validation = ImageFolder(args.validation, training.classes)
    pinned = torch.cuda.is_available()
    # `choose_images` repeats images until every rank has the same number. That is right for training, but in
    # validation each image counts once, so every rank takes each world-th image.
    validation_batches = DataLoader(Subset(validation, range(rank, len(validation), world)), batch_size=256)

    trainer = build_trainer(args, len(training.classes))
    checkpoint = args.checkpoint_dir / "checkpoint.pt" if args.checkpoint_dir else None
    first = trainer.load_checkpoint(checkpoint) if checkpoint else 0
    if trainer.step and rank == 0:
        where = f"at image {trainer.images} of epoch {first}" if trainer.images else f"after epoch {first - 1}"
        print(f"resumed from {checkpoint} {where}", flush=True)

    for epoch in range(first, args.epochs):
        chosen = choose_images(len(training), args.seed + epoch, trainer.images, rank, world)
        batches = DataLoader(training, args.batch_size, sampler=chosen, num_workers=args.workers, pin_memory=pinned)
        torch.manual_seed((args.seed * 10_000 + epoch) * world + rank)
        if not trainer.train_epoch(epoch, batches):
            if rank == 0 and checkpoint:
                trainer.save_checkpoint(checkpoint, epoch)
            return None
        accuracy = trainer.measure_accuracy(validation_batches)
        if rank == 0:
            print(f"epoch={epoch} step={trainer.step} accuracy={accuracy:.4f}", flush=True)
            if checkpoint:
                trainer.save_checkpoint(checkpoint, epoch + 1)

    if rank == 0 and args.model_dir:
        save({"classes": training.classes, "model": trainer.model.state_dict()}, args.model_dir / "model.pt")
    return trainer.measure_accuracy(validation_batches)


def main() -> None:
    """Join the other ranks, train, and check the accuracy."""
    args = parse_arguments()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank = dist.get_rank()
    accuracy = train(args)
    # Optimizers import torch.distributed.nn, whose functions keep a reference to the current group: gloo's threads
    # would stay alive and sometimes abort the process at its end. So import it before the group exists.
    dist.destroy_process_group()
    # One rank reports the failure for all.
    if rank == 0 and accuracy is not None and accuracy < args.require_accuracy:
        raise SystemExit(f"validation accuracy {accuracy:.4f} is below the required {args.require_accuracy}")


if __name__ == "__main__":
    main()
