"""Convert the runs of a launch script to jobs: each becomes a document or a list of problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from muster.api.document import JSON, Document
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.validation.validate import validate
from muster.importers.sagemaker.source import NotInline, inline
from muster.importers.sagemaker.translate.document import job_text, job_value
from muster.importers.sagemaker.translate.entry import Folder
from muster.importers.sagemaker.translate.estimator.estimator import translated as translated_fit
from muster.importers.sagemaker.translate.naming import job_name
from muster.importers.sagemaker.translate.reading import Problems
from muster.importers.sagemaker.translate.recording import EstimatorFit, Recording, TrainerRun
from muster.importers.sagemaker.translate.secret_names import warn_of_secrets
from muster.importers.sagemaker.translate.trainer.trainer import translated as translated_run
from muster.importers.sagemaker.translate.translation import Place, Translated


@dataclass(frozen=True)
class Imported:
    """The jobs' documents in the script's order, warnings, and the problems of runs that can't be imported."""

    documents: tuple[str, ...]
    warnings: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Sources:
    """Where to find code: below `folder`, unless the user names the source in `override`."""

    folder: Path
    override: Mapping[str, JSON] | None


Judge = Callable[[Job], None]
"""Raises `InvalidResource` for a job for which muster can't build a request."""


def imported(recording: Recording, script: str, place: Place, sources: Sources, judge: Judge) -> Imported:
    """Convert the recorded runs of a script. `script` is its file name."""
    documents: list[str] = []
    warnings = [str(note) for note in recording.notes]
    problems: list[str] = []
    names: set[str] = set()
    for run in recording.runs:
        run_problems = Problems()
        result = _translated(run, place, run_problems)
        name = job_name(result.name or PurePath(script).stem, names)
        names.add(name)
        spec = _with_source(result, sources, recording.files, run_problems)
        warn_of_secrets(spec, run_problems)
        # report the script's mistakes first: the incomplete job would have more
        if not run_problems.found:
            documents += _document(job_value(name, spec), run.place, judge, run_problems)
        warnings += [f"{run.place}: {warning}" for warning in run_problems.warnings]
        problems += [f"{run.place}: {problem}" for problem in run_problems.found]
    return Imported(tuple(documents), tuple(warnings), tuple(problems))


def _translated(run: EstimatorFit | TrainerRun, place: Place, problems: Problems) -> Translated:
    if isinstance(run, EstimatorFit):
        return translated_fit(run, place, problems)
    return translated_run(run, place, problems)


def _document(value: JSON, origin: str, judge: Judge, problems: Problems) -> list[str]:
    try:
        judge(validate(Document(value, origin)))
    except InvalidResource as invalid:
        problems.found.extend(str(problem) for problem in invalid.problems)
        return []
    return [job_text(value, origin)]


def _with_source(result: Translated, sources: Sources, files: Mapping[str, str], problems: Problems) -> dict[str, JSON]:
    spec = {**result.spec}
    try:
        source = _source(result, sources, files, problems)
    except NotInline as problem:
        problems.add("its code", str(problem))
        return spec
    return {**spec, "source": {**source}} if source is not None else spec


def _source(
    result: Translated, sources: Sources, files: Mapping[str, str], problems: Problems
) -> Mapping[str, JSON] | None:
    if result.code is None or not isinstance(result.code, Folder):
        return result.code
    if sources.override is not None:
        return sources.override
    code = inline(result.code, sources.folder, files)
    if code.left_out:
        problems.warn("its code", f"{', '.join(code.left_out)} is left out, although the SDK packs it, too")
    return {"inline": {"files": dict(code.files)}}
