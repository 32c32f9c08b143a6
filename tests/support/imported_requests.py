"""muster's requests for the training runs of a launch script, for comparisons with the SageMaker SDK's own requests."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.validation.validate import validate
from muster.api.yaml.load import decode_documents
from muster.importers.sagemaker.jobs import SourceOptions, import_jobs
from muster.importers.sagemaker.notebook import ScriptPart
from muster.importers.sagemaker.script_run import ScriptRequest, UnsupportedQuestion, run_script
from muster.importers.sagemaker.translate.recording import EstimatorFit, Recording, TrainerRun
from muster.importers.sagemaker.translate.translation import AccountOptions
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings

ACCOUNT = "111122223333"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/SageMakerRole"

Answer = Mapping[str, JSON]
"""{"request": ...}, or {"refused": ...} with the reason."""


def record_runs(script: str, folder: Path, files: Sequence[str]) -> list[EstimatorFit | TrainerRun]:
    """Return the runs that a launch script starts, from its own process. `files` are created empty in `folder`."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    part = ScriptPart("launch.py", script)
    request = ScriptRequest((part,), folder, folder, (), sys.executable, {"PATH": os.defpath}, 120)
    recording = run_script(request, _refuse_question)
    assert recording.failure is None
    return list(recording.runs)


def _refuse_question(about: Mapping[str, str]) -> str:
    raise UnsupportedQuestion(f"no script here asks for {about}")


def render_run(run: EstimatorFit | TrainerRun, folder: Path, region: str, name: str) -> Answer:
    """muster's answer for the training job `name`: the run imported as a job, the job's file read and rendered."""
    place = AccountOptions(None, ACCOUNT, None)
    result = import_jobs(Recording([run]), "launch.py", place, SourceOptions(folder, None), lambda _: None)
    if result.problems:
        return {"refused": "; ".join(result.problems)}
    [document] = decode_documents(result.documents[0].encode(), "launch.yaml")
    try:
        settings = RequestSettings(region, ACCOUNT, name)
        return {"request": render_request(validate(document), settings, load_image_facts()).body}
    except InvalidResource as invalid:
        return {"refused": "; ".join(str(problem) for problem in invalid.problems)}
