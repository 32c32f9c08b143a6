"""An SDK 3 ModelTrainer and its `train` as a job. Pure."""

from __future__ import annotations

from muster.importers.sagemaker.reading import Problems
from muster.importers.sagemaker.recording import TrainerRun
from muster.importers.sagemaker.translation import Place, Translated


def translated(run: TrainerRun, place: Place, problems: Problems) -> Translated:
    """The job that does what the SDK would have sent. What it can't do is added to `problems`."""
    del run, place
    problems.add("ModelTrainer", "not yet")
    return Translated("", {}, None)
