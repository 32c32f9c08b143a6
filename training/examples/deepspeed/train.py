"""Train a small classifier with DeepSpeed's ZeRO. The data is random, so it downloads nothing."""

import argparse
import os

import deepspeed
import torch
from torch import nn

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
    parser.add_argument("--zero-stage", type=int, default=2, choices=(0, 1, 2, 3))
    return parser.parse_args()


def make_config(options: argparse.Namespace) -> dict[str, object]:
    """Return DeepSpeed's configuration, which is often in a file."""
    return {
        "train_micro_batch_size_per_gpu": options.batch_size,
        "zero_optimization": {"stage": options.zero_stage},
        # Of torch, as DeepSpeed compiles its own optimizers.
        "optimizer": {"type": "AdamW", "params": {"lr": options.lr, "torch_adam": True}},
    }


def main() -> None:
    """Train, and print the mean loss of every tenth step."""
    options = parse_arguments()
    deepspeed.init_distributed("nccl" if torch.cuda.is_available() else "gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=make_config(options))
    generator = torch.Generator().manual_seed(int(os.environ["RANK"]))
    for step in range(1, options.steps + 1):
        points = torch.randn(options.batch_size, FEATURES, generator=generator).to(engine.device)
        # A point's class is the greatest of its first features.
        loss = nn.functional.cross_entropy(engine(points), points[:, :CLASSES].argmax(dim=1))
        engine.backward(loss)
        engine.step()
        report(step=step, total_steps=options.steps)
        if step % 10 == 0:
            mean = loss.detach().clone()
            torch.distributed.all_reduce(mean)
            if torch.distributed.get_rank() == 0:
                print(f"step={step} loss={mean.item() / torch.distributed.get_world_size():.5f}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
