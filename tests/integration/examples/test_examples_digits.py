"""The classifier's features: resuming, compressed gradients, a checked result."""

import importlib
from pathlib import Path

import pytest

from support.example_runs import EXAMPLES, CompletedRun, run_with_torchrun

# Two ranks test the same as four.
RANKS = 2
STEPS_PER_EPOCH = 90

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def uninterrupted(channels: dict[str, str]) -> CompletedRun:
    """Three epochs without interruption, with the loss of each step."""
    end = run_with_torchrun(RANKS, "digits", ["--epochs", "3", "--log-every", "1"], channels)
    assert end.exit_code == 0, end.messages
    return end


def test_a_resumed_run_goes_on_as_if_never_stopped(
    channels: dict[str, str], uninterrupted: CompletedRun, tmp_path: Path
) -> None:
    folders = ["--checkpoint-dir", str(tmp_path / "checkpoints"), "--model-dir", str(tmp_path / "model")]
    stopped = run_with_torchrun(
        RANKS, "digits", ["--epochs", "2", "--log-every", "1", "--require-accuracy", "1.0", *folders], channels
    )
    # The accuracy is too low: one rank prints one sentence; the snapshot is still written.
    assert stopped.exit_code != 0
    assert stopped.messages.count("is below the required 1.0") == 1
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["checkpoint.pt"]

    resumed = run_with_torchrun(RANKS, "digits", ["--epochs", "3", "--log-every", "1", *folders], channels)
    assert resumed.exit_code == 0, resumed.messages
    assert "after epoch 1" in resumed.output
    assert f"step={3 * STEPS_PER_EPOCH} accuracy=" in resumed.output
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["model.pt"]
    # The same operations in the same order on the same numbers; the tolerance is for the last printed digit.
    assert stopped.parse_losses() + resumed.parse_losses() == pytest.approx(
        uninterrupted.parse_losses(), rel=1e-4, abs=2e-5
    )


def test_no_image_is_trained_twice_when_the_number_of_ranks_changes_within_an_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "digits"))
    choose, images, batch = importlib.import_module("train").choose_images, 100, 2
    trained: list[int] = []
    # The attempts have so many ranks, and make so many steps until the stop.
    for world, steps in ((3, 5), (2, 8), (3, 100)):
        first = len(trained)
        for rank in range(world):
            trained += choose(images, 4, first, rank, world)[: steps * batch]
    assert set(trained) == set(range(images))
    # Only the last step repeats images, so that all ranks have the same number.
    assert len(trained) - images < 3


@pytest.mark.parametrize(("method", "exact_steps"), [("fp16", 1), ("bf16", 1), ("powersgd", 50)])
def test_compressed_gradients_train_as_well(
    channels: dict[str, str], uninterrupted: CompletedRun, method: str, exact_steps: int
) -> None:
    end = run_with_torchrun(
        RANKS, "digits", ["--epochs", "1", "--log-every", "1", "--gradient-compression", method], channels
    )
    assert end.exit_code == 0, end.messages
    losses, plain = end.parse_losses(), uninterrupted.parse_losses()[:STEPS_PER_EPOCH]
    assert losses[:exact_steps] == pytest.approx(plain[:exact_steps], rel=1e-4)
    assert losses != plain, "the gradients were not compressed"
    assert sum(losses[-20:]) == pytest.approx(sum(plain[-20:]), rel=0.15)
