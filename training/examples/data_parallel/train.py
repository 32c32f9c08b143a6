"""Train an image classifier in one process that uses all GPUs of its machine (torch.nn.DataParallel), or its CPU.

When to use it: to try a second GPU with a script that has no ranks; it takes one line.

When not to use it: for longer trainings, or more than one machine. One Python process drives all GPUs, sends the whole
model to each of them in every step, and collects all outputs on the first GPU, so that further GPUs hardly help.
DistributedDataParallel (../digits) avoids all of that.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def parse_arguments() -> argparse.Namespace:
    """Parse the hyperparameters, which are --name value. The folders are in SM_* variables, as on SageMaker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--validation", type=Path, default=os.environ.get("SM_CHANNEL_VALIDATION"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR"))
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=32, help="images of a step, shared by all GPUs")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.train is None or options.validation is None:
        parser.error("--train and --validation are needed where SM_CHANNEL_TRAIN and SM_CHANNEL_VALIDATION are unset")
    return options


def read_images(folder: Path) -> TensorDataset:
    """Read the images FOLDER/<class>/*.png, whose classes are numbers; they fit in memory."""
    paths = sorted(folder.glob("*/*.png"))
    if not paths:
        raise SystemExit(f"{folder}: no images <class>/*.png in there")
    images = np.stack([np.asarray(Image.open(path).convert("L"), dtype=np.float32) / 255 for path in paths])
    return TensorDataset(torch.from_numpy(images).unsqueeze(1), torch.tensor([int(path.parent.name) for path in paths]))


def build_classifier() -> nn.Sequential:
    """Build a small convolutional network for images of 8 x 8 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 10),
    )


@torch.no_grad()
def measure_accuracy(model: nn.Module, batches: DataLoader[tuple[Tensor, ...]], device: torch.device) -> float:
    """Return the fraction of correctly classified images."""
    model.eval()
    correct = images = 0
    for inputs, labels in batches:
        correct += int((model(inputs.to(device)).argmax(dim=1) == labels.to(device)).sum())
        images += len(labels)
    return correct / images


def main() -> None:
    """Train, print the validation accuracy of each epoch, save the model."""
    args = parse_arguments()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    training = DataLoader(read_images(args.train), args.batch_size, shuffle=True)
    validation = DataLoader(read_images(args.validation), batch_size=256)

    # This line is the only change: it splits each batch over all GPUs; without GPUs it only calls the model.
    model = nn.DataParallel(build_classifier().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    step = 0
    for epoch in range(args.epochs):
        model.train()
        for inputs, labels in training:
            loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            step += 1
            if step % 10 == 0:
                print(f"epoch={epoch} step={step} loss={loss.item():.5f}", flush=True)
        print(f"epoch={epoch} step={step} accuracy={measure_accuracy(model, validation, device):.4f}", flush=True)

    if args.model_dir:
        args.model_dir.mkdir(parents=True, exist_ok=True)
        # `module` is the model itself: the file is readable without DataParallel.
        torch.save(model.module.state_dict(), args.model_dir / "model.pt")


if __name__ == "__main__":
    main()
