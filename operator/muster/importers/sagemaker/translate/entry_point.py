"""Convert an estimator's image, entry point and code. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import basename, dirname, normpath

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments, set_field

SERVICE_COMMAND = "train"
"""The argument that SageMaker passes to an image's entry point (api/spec/sagemaker/launch.py)."""

_GIT_SECRETS = ("2FA_enabled", "username", "password", "token")


@dataclass(frozen=True)
class LocalCode:
    """Code on this machine that the SDK would pack: a folder, or one script, and additional files.

    The job omits files whose names match one of the patterns `ignored`.
    """

    script: str
    folder: str | None
    beside: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class EntryPoint:
    """The job's `command`, and its `code`: a source, a folder on this machine, or None if the image has it.

    `block` has the fields of `spec.sagemaker`: framework and containers.
    """

    command: tuple[str, ...]
    image: str | None
    code: Mapping[str, JSON] | LocalCode | None
    block: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def uses_toolkit(self) -> bool:
        """Whether SageMaker's toolkit in the image runs the command."""
        return "framework" in self.block or self.block.get("start") == "Toolkit"


def convert_entry_point(kind: str, arguments: Arguments) -> EntryPoint:
    """Convert the estimator's image, entry point and code."""
    image = arguments.text("image_uri")
    block: dict[str, JSON] = {}
    set_field(block, "framework", _convert_framework(kind, arguments))
    entrypoint, container_arguments = (
        arguments.text_list("container_entry_point"),
        arguments.text_list("container_arguments"),
    )
    set_field(block, "containerEntrypoint", entrypoint)
    set_field(block, "containerArguments", container_arguments)
    script, folder = arguments.text("entry_point"), arguments.text("source_dir")
    code = _convert_code(script, folder, arguments)
    if script is None:
        if kind != "Estimator":
            arguments.problems.add(arguments.where("entry_point"), "is missing: the script that the image runs")
        container = tuple(str(argument) for argument in (*entrypoint, *container_arguments))
        return EntryPoint(container or (SERVICE_COMMAND,), image, code, block)
    if kind == "Estimator":
        block["start"] = "Toolkit"
    # the toolkit gets the script even if the container has an entry point
    return EntryPoint(_build_command(script, folder), image, code, block)


def _build_command(script: str, folder: str | None) -> tuple[str, ...]:
    # for a script without source_dir, the SDK uses only the file name (fw_utils.tar_and_upload_dir)
    name = basename(script) if folder is None else script
    return ("python", name) if name.endswith(".py") else (f"./{name}",)


def _is_archive(folder: str) -> bool:
    return folder.lower().startswith("s3://")


def _convert_framework(kind: str, arguments: Arguments) -> JSON:
    framework: dict[str, JSON] = {"name": kind}
    match kind:
        case "Estimator":
            return None
        case "HuggingFace":
            set_field(framework, "version", arguments.text("transformers_version"))
            set_field(framework, "pytorchVersion", arguments.text("pytorch_version"))
            set_field(framework, "tensorflowVersion", arguments.text("tensorflow_version"))
        case _:
            set_field(framework, "version", arguments.text("framework_version"))
    set_field(framework, "pythonVersion", arguments.text("py_version"))
    model_dir = arguments.value("model_dir") if kind == "TensorFlow" else None
    if isinstance(model_dir, str):
        framework["modelDir"] = model_dir
    elif model_dir is False:
        framework["modelDir"] = "None"
    elif model_dir is not None:
        arguments.problems.add(arguments.where("model_dir"), f"found {model_dir!r}; text or False is expected")
    return framework


def _convert_code(
    script: str | None, folder: str | None, arguments: Arguments
) -> Mapping[str, JSON] | LocalCode | None:
    dependencies = tuple(str(name) for name in arguments.text_list("dependencies"))
    git = arguments.dictionary("git_config")
    if script is None:
        for name, value in (("source_dir", folder), ("dependencies", dependencies), ("git_config", git)):
            if value:
                arguments.problems.add(arguments.where(name), "code needs an entry_point that runs it")
        return None
    if dependencies and (git or (folder is not None and _is_archive(folder))):
        arguments.problems.add(arguments.where("dependencies"), "muster can't add files to a repository or an archive")
    if git:
        return {"git": _convert_git(git, script, folder, arguments)}
    if folder is not None and _is_archive(folder):
        return {"s3": {"uri": folder}}
    return LocalCode(script, folder, dependencies)


def _convert_git(git: Mapping[str, object], script: str, folder: str | None, arguments: Arguments) -> JSON:
    where = arguments.where("git_config")
    secrets = [name for name in _GIT_SECRETS if git.get(name)]
    if secrets:
        arguments.problems.add(
            where, f"{', '.join(secrets)}: put the token into a Secret and name it in spec.source.git.secretKeyRef"
        )
    source: dict[str, JSON] = {}
    for field_name, name in (("url", "repo"), ("commit", "commit")):
        value = git.get(name)
        if not isinstance(value, str):
            arguments.problems.add(where, f"{name} is missing: a job's source is one commit, with its whole hash")
        else:
            source[field_name] = value
    path = normpath((folder if folder is not None else dirname(script)).strip("/"))
    set_field(source, "path", "" if path == "." else path)
    return source
