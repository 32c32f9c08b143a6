"""Run `muster import`: convert a SageMaker launch script's training jobs to files. No request reaches AWS."""

from __future__ import annotations

import os
import re
import site
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.cli.aws_options import check_region, choose_account
from muster.cli.errors import BadInput, format_os_error
from muster.importers.sagemaker.jobs import JobCheck, SourceOptions, import_jobs
from muster.importers.sagemaker.notebook import InvalidNotebook, ScriptPart, split_notebook
from muster.importers.sagemaker.script_run import ScriptRequest, UnsupportedQuestion, run_script
from muster.importers.sagemaker.translate.recording import Failure
from muster.importers.sagemaker.translate.translation import AccountOptions
from muster.render.sagemaker.image_facts import load_image_facts
from muster.render.sagemaker.images import Framework, ImageRequest, NoSuchImage, select_training_image
from muster.render.sagemaker.request.render import render_request
from muster.render.sagemaker.request.settings import RequestSettings

_NOT_IMPORTED = 1

_INHERITED_VARIABLES = ("LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "VIRTUAL_ENV")
"""The variables that the script inherits to run Python. They contain no credentials."""

_PLACEHOLDER_ACCOUNT = "0" * 12
_GIT_SOURCE = re.compile(r"(?P<url>https://[^@]+)@(?P<commit>[0-9a-f]+)(//(?P<path>.+))?")

_FRAMEWORKS: Mapping[str, Framework] = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "huggingface": "HuggingFace"}

_IMAGE_ARGUMENTS = {
    *("framework", "region", "version", "py_version", "instance_type", "base_framework_version", "image_scope"),
}
"""The arguments of `retrieve` that muster supports to select an image."""


@dataclass(frozen=True)
class ImportOptions:
    """The options of `muster import`. `environment` has NAME=VALUE, or NAME for a variable of muster's environment."""

    script: str
    arguments: Sequence[str]
    python: str | None
    environment: Sequence[str]
    source: str | None
    region: str | None
    account: str | None
    role: str | None
    timeout_seconds: float


def import_script(options: ImportOptions) -> int:
    """Print the script's jobs, or the problems; return the exit code. Raises `BadInput`."""
    path = Path(options.script)
    account = AccountOptions(check_region(options.region), choose_account(options.account, options.role), options.role)
    sources = SourceOptions(path.parent if path.suffix == ".ipynb" else Path(), _parse_source(options.source))
    script_request = ScriptRequest(
        parts=_read_parts(path),
        script_folder=path.parent.absolute(),
        working_folder=sources.folder.absolute(),
        arguments=options.arguments,
        python=options.python or sys.executable,
        environment=_make_script_environment(options.environment, os.environ),
        timeout_seconds=options.timeout_seconds,
        region=account.region,
        account=account.account,
        role=account.role,
    )
    try:
        recording = run_script(script_request, _find_image)
    except OSError as problem:
        raise BadInput(format_os_error(problem)) from None
    result = import_jobs(recording, path.name, account, sources, _build_job_check(account))
    for warning in (*_make_sdk_default_warnings(), *result.warnings):
        typer.echo(f"warning: {warning}", err=True)
    problems = [
        *result.problems,
        *([_describe_failure(recording.failure, script_request.python)] if recording.failure else []),
    ]
    for sentence in problems:
        typer.echo(sentence, err=True)
    if problems or not result.documents:
        # Import all jobs or none, because a file that lacks a job would look complete.
        typer.echo(f"{path.name}: " + ("nothing is imported" if problems else "it starts no training job"), err=True)
        return _NOT_IMPORTED
    typer.echo("---\n".join(result.documents), nl=False)
    return 0


def _read_parts(path: Path) -> tuple[ScriptPart, ...]:
    if path.suffix not in {".py", ".ipynb"}:
        raise BadInput(f"{path}: a manifest (.yaml), a script (.py) or a notebook (.ipynb) is expected")
    try:
        text = path.read_text(encoding="utf-8")
        return split_notebook(text, path.name) if path.suffix == ".ipynb" else (ScriptPart(path.name, text),)
    except OSError as problem:
        raise BadInput(format_os_error(problem)) from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not UTF-8") from None
    except InvalidNotebook as problem:
        raise BadInput(f"{path}: {problem}") from None


def _make_script_environment(pairs: Sequence[str], user_environment: Mapping[str, str]) -> dict[str, str]:
    environment = {name: user_environment[name] for name in _INHERITED_VARIABLES if name in user_environment}
    # The script has no home folder, but may import packages from the user's site directory.
    environment["PYTHONUSERBASE"] = site.getuserbase()
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if name.startswith("AWS_") and name not in {"AWS_REGION", "AWS_DEFAULT_REGION"}:
            raise BadInput(f"--env {name}: a launch script gets no AWS credentials, and no request reaches AWS")
        if not equals and name not in user_environment:
            raise BadInput(f"--env {name}: the variable isn't set here; use --env {name}=VALUE")
        environment[name] = value if equals else user_environment[name]
    return environment


def _parse_source(name: str | None) -> Mapping[str, JSON] | None:
    if name is None:
        return None
    if name.startswith("s3://"):
        return {"s3": {"uri": name}}
    match = _GIT_SOURCE.fullmatch(name)
    if match is None:
        raise BadInput(
            f"--source {name}: s3://bucket/key.tar.gz or https://host/owner/name.git@COMMIT is expected, the latter "
            "with //FOLDER after it for one of its folders"
        )
    path: dict[str, JSON] = {"path": match["path"]} if match["path"] else {}
    return {"git": {"url": match["url"], "commit": match["commit"], **path}}


def _find_image(arguments: Mapping[str, str]) -> str:
    """Return the URI of a training image for the arguments of `image_uris.retrieve`."""
    framework = _FRAMEWORKS.get(arguments["framework"])
    if framework is None:
        supported = ", ".join(_FRAMEWORKS)
        call = f"image_uris.retrieve({arguments['framework']!r})"
        raise UnsupportedQuestion(
            f"{call}: muster supports the images of {supported}; write the image's address into the script"
        )
    unknown = sorted(arguments.keys() - _IMAGE_ARGUMENTS)
    if unknown:
        call = f"image_uris.retrieve({unknown[0]}=...)"
        raise UnsupportedQuestion(
            f"{call}: muster doesn't support this argument; write the image's address into the script"
        )
    base = arguments.get("base_framework_version", "")
    image_request = ImageRequest(
        framework=framework,
        version=arguments.get("version", ""),
        region=arguments["region"],
        instance_type=arguments.get("instance_type", ""),
        python=arguments.get("py_version", ""),
        pytorch=base.removeprefix("pytorch") if base.startswith("pytorch") else "",
        tensorflow=base.removeprefix("tensorflow") if base.startswith("tensorflow") else "",
    )
    try:
        return select_training_image(image_request, load_image_facts())
    except NoSuchImage as problem:
        raise UnsupportedQuestion(f"image_uris.retrieve(...): {problem}") from None


def _build_job_check(account: AccountOptions) -> JobCheck:
    """Return a check that a job's image exists, and that its request is within SageMaker's limits."""

    def check_job(job: Job) -> None:
        block = job.spec.sagemaker
        region = block.region if block is not None and block.region is not None else account.region
        if region is not None:
            render_request(
                job,
                RequestSettings(region, account.account or _PLACEHOLDER_ACCOUNT, job.metadata.name),
                load_image_facts(),
            )

    return check_job


def _make_sdk_default_warnings() -> list[str]:
    """Return warnings about the SDK's configuration files, which have defaults (sagemaker/config/config.py)."""
    files = {
        "SAGEMAKER_ADMIN_CONFIG_OVERRIDE": "/etc/xdg/sagemaker/config.yaml",
        "SAGEMAKER_USER_CONFIG_OVERRIDE": str(Path.home() / ".config" / "sagemaker" / "config.yaml"),
    }
    result = [
        os.environ.get(name, default_path)
        for name, default_path in files.items()
        if name in os.environ or Path(default_path).is_file()
    ]
    return [
        f"{file} has defaults for the SageMaker SDK, which aren't imported: set them in the script" for file in result
    ]


def _describe_failure(failure: Failure, python: str) -> str:
    if failure.missing_module is not None:
        return f"{failure.note}; {python} lacks the module: set --python to the Python with which you run the script"
    return str(failure.note)
