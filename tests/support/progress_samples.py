"""The progress of a job as a user sees it over time, compared with how long the job really took."""

from dataclasses import dataclass

from muster_dev.cache import install_folder

FIRST_SECONDS = 10.0
"""Both numbers are there at most this long after the first line of the trainer's log."""

TOLERANCE = 0.6
"""The greatest error of the remaining time at half time, as a part of the truth.

On a quiet machine it is less than 0.3. A test may run while something else delays one half of the training.
"""


@dataclass(frozen=True)
class Sample:
    """The percentage and the remaining seconds that were shown at `at`."""

    at: float
    percent: int | None
    remaining: int | None


def find_transformers() -> str:
    """Return the folder of Transformers, for PYTHONPATH; download it if necessary."""
    return str(install_folder("transformers", "transformers.txt"))


def find_lightning() -> str:
    """Return the folder of Lightning, for PYTHONPATH; download it if necessary."""
    return str(install_folder("lightning", "lightning.txt"))


def check_samples(samples: list[Sample], first_log_at: float) -> None:
    """Check when the numbers appeared, that they never were nonsense, and the estimate at half time."""
    complete = [sample for sample in samples if sample.percent is not None and sample.remaining is not None]
    assert complete, "there never was a percentage with a remaining time"
    assert complete[0].at <= first_log_at + FIRST_SECONDS
    percents = [sample.percent for sample in samples if sample.percent is not None]
    assert percents == sorted(percents), "one attempt never goes back"
    began_at = next(sample.at for sample in samples if sample.percent is not None)
    ended_at = next(sample.at for sample in samples if sample.percent == 100)
    half = min(complete, key=lambda sample: abs(sample.at - (began_at + ended_at) / 2))
    truth = ended_at - half.at
    print(f"at {half.percent} % {half.remaining} s remained by the estimate, and in truth {truth:.1f} s")  # noqa: T201
    assert half.remaining is not None
    assert abs(half.remaining - truth) <= TOLERANCE * truth, f"{half.remaining} s instead of {truth:.1f} s"
