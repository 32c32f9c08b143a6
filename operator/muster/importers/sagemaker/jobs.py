"""Convert the training runs of a launch script to job documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from muster.api.document import JSON, Document
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.api.validation.validate import validate
from muster.importers.sagemaker.source import CodeNotInline, read_inline_code
from muster.importers.sagemaker.translate.arguments import Problems
from muster.importers.sagemaker.translate.document import build_resource, format_resource
from muster.importers.sagemaker.translate.entry_point import LocalCode
from muster.importers.sagemaker.translate.estimator.estimator import translate_estimator as translate_fit
from muster.importers.sagemaker.translate.job_names import choose_job_name
from muster.importers.sagemaker.translate.recording import EstimatorFit, Recording, TrainerRun
from muster.importers.sagemaker.translate.secret_names import warn_about_secrets
from muster.importers.sagemaker.translate.trainer.trainer import translate_trainer as translate_run
from muster.importers.sagemaker.translate.translation import AccountOptions, TranslatedJob


@dataclass(frozen=True)
class ImportResult:
    """The jobs' documents in the script's order, warnings, and the problems of runs that muster can't import."""

    documents: tuple[str, ...]
    warnings: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class SourceOptions:
    """The location of the code: the folder `folder`, or the job's source in `override` if the user set one."""

    folder: Path
    override: Mapping[str, JSON] | None


JobCheck = Callable[[Job], None]
"""Checks that muster can build the job's request. Raises `InvalidResource` if it can't."""


def import_jobs(
    recording: Recording, script: str, account: AccountOptions, sources: SourceOptions, check_job: JobCheck
) -> ImportResult:
    """Convert the recorded runs of a script. `script` is its file name."""
    documents: list[str] = []
    warnings = [str(note) for note in recording.notes]
    problems: list[str] = []
    names: set[str] = set()
    for run in recording.runs:
        run_problems = Problems()
        result = _translate(run, account, run_problems)
        name = choose_job_name(result.name or PurePath(script).stem, names)
        names.add(name)
        spec = _add_source(result, sources, recording.files, run_problems)
        warn_about_secrets(spec, run_problems)
        # Validate only jobs whose translation is complete.
        if not run_problems.messages:
            documents += _build_document(build_resource(name, spec), run.location, check_job, run_problems)
        warnings += [f"{run.location}: {warning}" for warning in run_problems.warnings]
        problems += [f"{run.location}: {problem}" for problem in run_problems.messages]
    return ImportResult(tuple(documents), tuple(warnings), tuple(problems))


def _translate(run: EstimatorFit | TrainerRun, account: AccountOptions, problems: Problems) -> TranslatedJob:
    if isinstance(run, EstimatorFit):
        return translate_fit(run, account, problems)
    return translate_run(run, account, problems)


def _build_document(value: JSON, origin: str, check_job: JobCheck, problems: Problems) -> list[str]:
    try:
        check_job(validate(Document(value, origin)))
    except InvalidResource as invalid:
        problems.messages.extend(str(problem) for problem in invalid.problems)
        return []
    return [format_resource(value, origin)]


def _add_source(
    result: TranslatedJob, sources: SourceOptions, files: Mapping[str, str], problems: Problems
) -> dict[str, JSON]:
    spec = {**result.spec}
    try:
        source = _build_source(result, sources, files, problems)
    except CodeNotInline as problem:
        problems.add("its code", str(problem))
        return spec
    return {**spec, "source": {**source}} if source is not None else spec


def _build_source(
    result: TranslatedJob, sources: SourceOptions, files: Mapping[str, str], problems: Problems
) -> Mapping[str, JSON] | None:
    if result.code is None or not isinstance(result.code, LocalCode):
        return result.code
    if sources.override is not None:
        return sources.override
    code = read_inline_code(result.code, sources.folder, files)
    if code.omitted_files:
        problems.warn("its code", f"muster omits {', '.join(code.omitted_files)}, which the SDK packs")
    return {"inline": {"files": dict(code.files)}}
