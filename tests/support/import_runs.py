"""Runs `muster import` on scripts that tests write, each in its own folder."""

from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from muster.api.document import JSON
from muster.api.yaml.load import load
from muster.cli.import_script import import_script
from muster_dev.golden_import import OPTIONS

ESTIMATOR = """\
import sagemaker
from sagemaker.estimator import Estimator
from sagemaker.pytorch import PyTorch
from sagemaker.inputs import FileSystemInput, ShuffleConfig, TrainingInput

def pytorch(**more):
    given = dict(entry_point="train.py", role=sagemaker.get_execution_role(), framework_version="2.0.1",
                 py_version="py310", instance_type="ml.p4d.24xlarge", instance_count=2)
    return PyTorch(**{**given, **more})
"""
"""The beginning of the tests' scripts: a valid estimator."""


@dataclass(frozen=True)
class Outcome:
    """The output and the exit code."""

    code: int
    out: str
    err: str

    @property
    def jobs(self) -> list[dict[str, JSON]]:
        """The printed jobs."""
        values = [document.value for document in load(self.out, "imported.yaml")]
        return [value for value in values if isinstance(value, dict)]

    @property
    def spec(self) -> dict[str, JSON]:
        """The spec of the only job."""
        (job,) = self.jobs
        spec = job["spec"]
        assert isinstance(spec, dict)
        return spec

    @property
    def block(self) -> dict[str, JSON]:
        """The job's spec.sagemaker."""
        block = self.spec["sagemaker"]
        assert isinstance(block, dict)
        return block


class Desk:
    """A folder with a script's code, and imports of scripts in it."""

    def __init__(self, folder: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._captured = captured
        (folder / "train.py").write_text("print('trained')\n", encoding="utf-8")

    def run(self, script: str, **options: Any) -> Outcome:
        """Import the script after the text of `ESTIMATOR`. The options are those of `ImportOptions`."""
        return self.run_file(ESTIMATOR + dedent(script), **options)

    def run_file(self, text: str, name: str = "launch.py", **options: Any) -> Outcome:
        """Import a script without `ESTIMATOR`."""
        (self.folder / name).write_text(text, encoding="utf-8")
        self._captured.readouterr()
        code = import_script(replace(OPTIONS, script=name, **options))
        said = self._captured.readouterr()
        return Outcome(code, said.out, said.err)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, capfd)
