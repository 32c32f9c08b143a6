"""Convert an estimator's image, entry point and code. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import basename, dirname, normpath

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments, set_field

SERVICE_COMMAND = "train"
"""The argument that SageMaker passes to an image's entry point (see api/spec/sagemaker/launch.py)."""

_GIT_SECRETS = ("2FA_enabled", "username", "password", "token")


@dataclass(frozen=True)
class LocalCode:
    """Code on this machine that the SDK would pack: a folder or a script, and `dependencies`.

    The job omits files whose names match one of `ignore_patterns`.
    """

    script: str
    folder: str | None
    dependencies: tuple[str, ...] = ()
    ignore_patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class EntryPoint:
    """The job's command, image and code. `code` is None if the image contains the code.

    `sagemaker_fields` has the fields of `spec.sagemaker` for the framework and the container.
    """

    command: tuple[str, ...]
    image: str | None
    code: Mapping[str, JSON] | LocalCode | None
    sagemaker_fields: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def uses_toolkit(self) -> bool:
        """Whether SageMaker's toolkit in the image runs the command."""
        return "framework" in self.sagemaker_fields or self.sagemaker_fields.get("start") == "Toolkit"


def convert_entry_point(estimator: str, arguments: Arguments) -> EntryPoint:
    """Convert the estimator's image, entry point and code."""
    image = arguments.take_text("image_uri")
    sagemaker_fields: dict[str, JSON] = {}
    set_field(sagemaker_fields, "framework", _convert_framework(estimator, arguments))
    entrypoint, container_arguments = (
        arguments.take_text_list("container_entry_point"),
        arguments.take_text_list("container_arguments"),
    )
    set_field(sagemaker_fields, "containerEntrypoint", entrypoint)
    set_field(sagemaker_fields, "containerArguments", container_arguments)
    script, folder = arguments.take_text("entry_point"), arguments.take_text("source_dir")
    code = _convert_code(script, folder, arguments)
    if script is None:
        if estimator != "Estimator":
            arguments.problems.add(
                arguments.describe_argument("entry_point"), "is missing; set it to the script that the image runs"
            )
        container = tuple(str(argument) for argument in (*entrypoint, *container_arguments))
        return EntryPoint(container or (SERVICE_COMMAND,), image, code, sagemaker_fields)
    if estimator == "Estimator":
        sagemaker_fields["start"] = "Toolkit"
    # The toolkit gets the script even if the container has an entry point.
    return EntryPoint(_build_command(script, folder), image, code, sagemaker_fields)


def _build_command(script: str, folder: str | None) -> tuple[str, ...]:
    # Without source_dir, the SDK uses only the script's file name (fw_utils.tar_and_upload_dir).
    name = basename(script) if folder is None else script
    return ("python", name) if name.endswith(".py") else (f"./{name}",)


def _is_archive(folder: str) -> bool:
    return folder.lower().startswith("s3://")


def _convert_framework(estimator: str, arguments: Arguments) -> JSON:
    framework: dict[str, JSON] = {"name": estimator}
    match estimator:
        case "Estimator":
            return None
        case "HuggingFace":
            set_field(framework, "version", arguments.take_text("transformers_version"))
            set_field(framework, "pytorchVersion", arguments.take_text("pytorch_version"))
            set_field(framework, "tensorflowVersion", arguments.take_text("tensorflow_version"))
        case _:
            set_field(framework, "version", arguments.take_text("framework_version"))
    set_field(framework, "pythonVersion", arguments.take_text("py_version"))
    model_dir = arguments.take_value("model_dir") if estimator == "TensorFlow" else None
    if isinstance(model_dir, str):
        framework["modelDir"] = model_dir
    elif model_dir is False:
        framework["modelDir"] = "None"
    elif model_dir is not None:
        arguments.problems.add(
            arguments.describe_argument("model_dir"), f"found {model_dir!r}; text or False is expected"
        )
    return framework


def _convert_code(
    script: str | None, folder: str | None, arguments: Arguments
) -> Mapping[str, JSON] | LocalCode | None:
    dependencies = tuple(str(name) for name in arguments.take_text_list("dependencies"))
    git = arguments.take_dictionary("git_config")
    if script is None:
        for name, value in (("source_dir", folder), ("dependencies", dependencies), ("git_config", git)):
            if value:
                arguments.problems.add(
                    arguments.describe_argument(name), "code requires an entry_point, the script to run"
                )
        return None
    if dependencies and (git or (folder is not None and _is_archive(folder))):
        arguments.problems.add(
            arguments.describe_argument("dependencies"), "muster can't add files to a repository or an archive"
        )
    if git:
        return {"git": _convert_git(git, script, folder, arguments)}
    if folder is not None and _is_archive(folder):
        return {"s3": {"uri": folder}}
    return LocalCode(script, folder, dependencies)


def _convert_git(git: Mapping[str, object], script: str, folder: str | None, arguments: Arguments) -> JSON:
    location = arguments.describe_argument("git_config")
    secrets = [name for name in _GIT_SECRETS if git.get(name)]
    if secrets:
        arguments.problems.add(
            location, f"{', '.join(secrets)}: put the token in a Secret and set spec.source.git.secretKeyRef"
        )
    source: dict[str, JSON] = {}
    for field_name, name in (("url", "repo"), ("commit", "commit")):
        value = git.get(name)
        if not isinstance(value, str):
            arguments.problems.add(
                location, f"{name} is missing; a job's source needs the repository and the commit's full hash"
            )
        else:
            source[field_name] = value
    path = normpath((folder if folder is not None else dirname(script)).strip("/"))
    set_field(source, "path", "" if path == "." else path)
    return source
