"""Runs `muster import` on scripts that tests write, each in its own folder."""

from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from muster.api.document import JSON
from muster.api.yaml.load import load_documents
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
class ImportOutput:
    """The output and the exit code."""

    code: int
    out: str
    err: str

    @property
    def jobs(self) -> list[dict[str, JSON]]:
        """The printed jobs."""
        values = [document.value for document in load_documents(self.out, "imported.yaml")]
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


class ImportFolder:
    """A folder with a training script, in which tests import launch scripts."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture
        (folder / "train.py").write_text("print('trained')\n", encoding="utf-8")

    def run(self, script: str, **options: Any) -> ImportOutput:
        """Import the script after the text of `ESTIMATOR`. The options are those of `ImportOptions`."""
        return self.run_file(ESTIMATOR + dedent(script), **options)

    def run_file(self, text: str, name: str = "launch.py", **options: Any) -> ImportOutput:
        """Import a script without `ESTIMATOR`."""
        (self.folder / name).write_text(text, encoding="utf-8")
        self._capture.readouterr()
        code = import_script(replace(OPTIONS, script=name, **options))
        output = self._capture.readouterr()
        return ImportOutput(code, output.out, output.err)


@pytest.fixture
def import_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> ImportFolder:
    monkeypatch.chdir(tmp_path)
    return ImportFolder(tmp_path, capfd)
