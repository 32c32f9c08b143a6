"""Decide how the job's code reaches the containers. Pure."""

from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import block_of
from muster.api.spec.sagemaker.launch import START_SCRIPT, Launch
from muster.render.sagemaker.request.drivers import DRIVERS_CHANNEL, driver_files
from muster.render.sagemaker.request.places import code_key, code_uri, input_uri
from muster.render.sagemaker.request.setting import Setting
from muster.render.sagemaker.request.start_script import start_files
from muster.render.sagemaker.request.training_request import Archive

CODE_CHANNEL = "code"
"""The channel for code that the containers can't download (estimator.py, EstimatorBase)."""

CODE_FOLDER = "/opt/ml/code"
_ARCHIVE_FILE = f"/opt/ml/input/data/{CODE_CHANNEL}/sourcedir.tar.gz"


@dataclass(frozen=True)
class Code:
    """`directory` is the toolkit's submit directory, `channel` the URI of the code's channel; "" if not used.

    `drivers` is the URI of the start script's channel. `archive` is None if muster packs nothing.
    """

    directory: str = ""
    channel: str = ""
    archive: Archive | None = None
    drivers: str = ""


def code(job: Job, how: Launch, setting: Setting) -> Code:
    """Decide how the job's code reaches the containers."""
    spec, block = job.spec, block_of(job.spec)
    if how.start == "Channels":
        return _in_channels(job, how, setting)
    archive = _archive(job, how, setting)
    source_uri = spec.source.s3.uri if spec.source is not None and spec.source.s3 is not None else ""
    uri = archive.uri if archive is not None else source_uri
    if not uri:
        return Code()
    if how.start == "Container" or block.network_isolation:
        return Code(_ARCHIVE_FILE, uri, archive)
    return Code(uri, "", archive)


def _in_channels(job: Job, how: Launch, setting: Setting) -> Code:
    """Code and start script as channels, as in SDK 3 (model_trainer.py, _create_training_job_args)."""
    spec = job.spec
    drivers = input_uri(spec, setting, DRIVERS_CHANNEL)
    source_uri = spec.source.s3.uri if spec.source is not None and spec.source.s3 is not None else ""
    channel = source_uri or (input_uri(spec, setting, CODE_CHANNEL) if spec.source is not None else "")
    objects = {f"{drivers}/{name}": content for name, content in driver_files(job, how).items()}
    packed = f"{channel}/sourcedir.tar.gz" if channel and not source_uri else ""
    return Code("", channel, Archive(packed, code_key(spec, setting), {}, objects), drivers)


def bootstrap(command: tuple[str, ...]) -> tuple[str, ...]:
    """A command that first unpacks the code into the toolkit's folder."""
    steps = f'mkdir -p {CODE_FOLDER} && cd {CODE_FOLDER} && tar -xzf {_ARCHIVE_FILE} && exec "$@"'
    return ("/bin/sh", "-c", steps, "sh", *command)


def script_command() -> tuple[str, ...]:
    """The command for muster's start script in a container without a toolkit."""
    return ("python3", START_SCRIPT)


def _archive(job: Job, how: Launch, setting: Setting) -> Archive | None:
    files = start_files(job, how) if how.uses_start_script else {}
    source = job.spec.source
    packs_source = source is not None and source.s3 is None
    if not packs_source and not files:
        return None
    return Archive(code_uri(job.spec, setting), code_key(job.spec, setting), files)
