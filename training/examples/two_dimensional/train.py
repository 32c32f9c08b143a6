"""Train a small transformer in two dimensions: tensor parallel and data parallel.

The ranks of one copy of the model split its layers, and the copies split each batch. With one rank it is a plain
training; the losses of both are equal up to rounding. It needs torch 2.6.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

CLASSES = 10
ROWS = COLUMNS = 8  # an image is a sequence of 8 rows of 8 pixels
WIDTH = 64
HEAD_WIDTH = 16


def parse_arguments() -> argparse.Namespace:
    """Parse the hyperparameters, which are --name value. The data's folder is in SM_CHANNEL_TRAIN."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, default=os.environ.get("SM_CHANNEL_TRAIN"))
    parser.add_argument("--model-dir", type=Path, default=os.environ.get("SM_MODEL_DIR"))
    parser.add_argument("--tensor-parallel", type=int, default=2, help="ranks that share one copy of the model")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=64, help="images of a step, over all ranks")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", type=Path, help="write the loss of every step to this file, as a JSON list")
    options = parser.parse_args()
    if options.train is None:
        parser.error("--train is needed where SM_CHANNEL_TRAIN is unset")
    return options


class Attention(nn.Module):
    """Self-attention over an image's rows."""

    def __init__(self) -> None:
        """Three projections instead of one, so that tensor parallelism can split each between heads."""
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, rows: Tensor) -> Tensor:
        """With tensor parallelism this rank has only some of the heads: -1 is their number."""
        batch = rows.shape[0]
        query, key, value = (
            project(rows).view(batch, ROWS, -1, HEAD_WIDTH).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        result: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, ROWS, -1))
        return result


class Block(nn.Module):
    """A transformer block: attention and a perceptron with residual connections."""

    def __init__(self) -> None:
        """The perceptron's inner width is four times as large, as usual."""
        super().__init__()
        self.attention_norm, self.perceptron_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, rows: Tensor) -> Tensor:
        rows = rows + self.attention(self.attention_norm(rows))
        result: Tensor = rows + self.down(nn.functional.gelu(self.up(self.perceptron_norm(rows))))
        return result


class Transformer(nn.Module):
    """Two blocks, and the mean over an image's rows."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(COLUMNS, WIDTH)
        self.position = nn.Parameter(torch.zeros(ROWS, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.classify = nn.Linear(WIDTH, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        rows = self.embed(images) + self.position
        for block in self.blocks:
            rows = block(rows)
        result: Tensor = self.classify(rows.mean(dim=1))
        return result


def parallelize(model: Transformer, mesh: DeviceMesh) -> None:
    """Split each block over "tp", then shard the result over "dp"."""
    # A pair of column-wise and row-wise splits needs one all-reduce at its end. In between each rank works on its own
    # heads or its own part of the perceptron.
    plan = {
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.out": RowwiseParallel(),
        "up": ColwiseParallel(),
        "down": RowwiseParallel(),
    }
    for block in model.blocks:
        parallelize_module(block, mesh["tp"], plan)
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])


def read_images(folder: Path) -> tuple[Tensor, Tensor]:
    """Read all images FOLDER/<class>/*.png on every rank: the data is small."""
    paths = sorted(folder.glob("*/*.png"))
    if not paths:
        raise SystemExit(f"{folder}: no images <class>/*.png in there")
    images = np.stack([np.asarray(Image.open(path).convert("L"), dtype=np.float32) / 255 for path in paths])
    return torch.from_numpy(images), torch.tensor([int(path.parent.name) for path in paths])


def build_mesh(tensor_parallel: int) -> DeviceMesh | None:
    """Arrange the ranks in rows of `tensor_parallel`; None for a single rank, which needs no parallelism."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return None
    if world % tensor_parallel:
        raise SystemExit(f"--tensor-parallel {tensor_parallel}: {world} ranks can't be divided by it")
    # "tp" comes last, so that its ranks are on one node: they communicate in every layer, "dp" once per step.
    shape = (world // tensor_parallel, tensor_parallel)
    return init_device_mesh("cuda" if torch.cuda.is_available() else "cpu", shape, mesh_dim_names=("dp", "tp"))


def train(args: argparse.Namespace, model: Transformer, mesh: DeviceMesh | None, device: torch.device) -> list[float]:
    """Train and return the loss of each step over the whole batch, equal on every rank."""
    copies, copy = (mesh["dp"].size(), mesh["dp"].get_local_rank()) if mesh else (1, 0)
    if args.batch_size % copies:
        raise SystemExit(f"--batch-size {args.batch_size}: {copies} copies of the model can't share it equally")
    images, labels = read_images(args.train)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    # The order of the images has its own generator, because it must be equal on every rank.
    order = torch.Generator().manual_seed(args.seed)
    losses = []
    for step in range(1, args.steps + 1):
        batch = torch.randint(len(images), (args.batch_size,), generator=order)
        # All ranks of a copy use the same images, and each copy uses its share.
        share = batch.chunk(copies)[copy]
        outputs = model(images[share].to(device))
        loss = nn.functional.cross_entropy(outputs, labels[share].to(device))
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

        # The copies' shares have equal size, so the mean of their means is the mean over the batch.
        mean = loss.detach() / copies
        if mesh:
            dist.all_reduce(mean, group=mesh.get_group("dp"))
        losses.append(mean.item())
        if step % 5 == 0 and (mesh is None or mesh.get_rank() == 0):
            print(f"step={step} loss={losses[-1]:.5f}", flush=True)
    return losses


def main() -> None:
    """Build the same model on every rank, split it, train it, and save all of it."""
    args = parse_arguments()
    mesh = build_mesh(args.tensor_parallel)
    device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    torch.manual_seed(args.seed)
    model = Transformer().to(device)
    if mesh:
        parallelize(model, mesh)
    losses = train(args, model, mesh, device)

    # Every rank takes part in collecting the weights; only rank 0 receives them.
    weights = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if mesh is None or mesh.get_rank() == 0:
        if args.model_dir:
            args.model_dir.mkdir(parents=True, exist_ok=True)
            torch.save(weights, args.model_dir / "model.pt")
        if args.losses:
            args.losses.write_text(json.dumps(losses))
    if mesh:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
