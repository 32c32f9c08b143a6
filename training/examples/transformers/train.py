"""A masked language model, trained by Transformers' Trainer as its example scripts do it.

It contains nothing for muster. The model has random weights, and the text comes from a local file, so it downloads
nothing.
"""

from dataclasses import dataclass, field
from pathlib import Path

import torch
from transformers import BertConfig, BertForMaskedLM, HfArgumentParser, Trainer, TrainingArguments, set_seed

VOCABULARY = 128
"""The model reads bytes of ASCII text. Byte 0 masks a character, which the model has to predict."""


@dataclass
class ModelArguments:
    """The size of the model."""

    hidden_size: int = field(default=64, metadata={"help": "The size of the hidden layers."})
    num_layers: int = field(default=2, metadata={"help": "The number of layers."})


@dataclass
class DataArguments:
    """The training data."""

    train_file: Path = field(default=Path(__file__), metadata={"help": "A text file."})
    block_size: int = field(default=64, metadata={"help": "The number of characters of a sample."})
    samples: int = field(default=2048, metadata={"help": "The number of samples of an epoch."})
    mask_probability: float = field(default=0.15, metadata={"help": "The part of the characters that is masked."})


class Blocks(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Blocks of the text at random positions, with masked characters."""

    def __init__(self, arguments: DataArguments) -> None:
        self.arguments = arguments
        text = arguments.train_file.read_bytes()
        self.text = torch.tensor([byte % VOCABULARY for byte in text])

    def __len__(self) -> int:
        return self.arguments.samples

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(index)
        size = self.arguments.block_size
        start = int(torch.randint(len(self.text) - size, (1,), generator=generator))
        block = self.text[start : start + size]
        is_masked = torch.rand(size, generator=generator) < self.arguments.mask_probability
        return {
            "input_ids": torch.where(is_masked, 0, block),
            "attention_mask": torch.ones_like(block),
            "labels": torch.where(is_masked, block, -100),
        }


def main() -> None:
    """Parse the arguments, train, and save the model and its metrics."""
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    model_arguments, data_arguments, training_arguments = parser.parse_args_into_dataclasses()
    set_seed(training_arguments.seed)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=model_arguments.hidden_size,
        num_hidden_layers=model_arguments.num_layers,
        num_attention_heads=4,
        intermediate_size=4 * model_arguments.hidden_size,
        max_position_embeddings=data_arguments.block_size,
    )
    trainer = Trainer(model=BertForMaskedLM(config), args=training_arguments, train_dataset=Blocks(data_arguments))
    result = trainer.train(resume_from_checkpoint=training_arguments.resume_from_checkpoint)
    trainer.save_model()
    trainer.log_metrics("train", result.metrics)
    trainer.save_metrics("train", result.metrics)


if __name__ == "__main__":
    main()
