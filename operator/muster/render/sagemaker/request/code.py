"""Choose how the containers get the job's code. Pure."""

from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.launch import START_SCRIPT, Launch
from muster.render.sagemaker.request.drivers import DRIVERS_CHANNEL, make_driver_files
from muster.render.sagemaker.request.places import choose_code_key, make_code_uri, make_input_uri
from muster.render.sagemaker.request.settings import RequestSettings
from muster.render.sagemaker.request.start_script import make_start_files
from muster.render.sagemaker.request.training_request import Archive

CODE_CHANNEL = "code"
"""The channel for code that containers can't download (estimator.py, EstimatorBase)."""

CODE_FOLDER = "/opt/ml/code"
_ARCHIVE_FILE = f"/opt/ml/input/data/{CODE_CHANNEL}/sourcedir.tar.gz"


@dataclass(frozen=True)
class Code:
    """How containers get the code: from the toolkit's submit directory `directory`, or from a channel.

    `channel` is the URI of the code's channel, `drivers` that of the start script's channel. Unused fields are "".
    `archive` is None if muster packs no code.
    """

    directory: str = ""
    channel: str = ""
    archive: Archive | None = None
    drivers: str = ""


def choose_code(job: Job, launch: Launch, settings: RequestSettings) -> Code:
    """Choose how the containers get the job's code."""
    spec, block = job.spec, get_sagemaker_block(job.spec)
    if launch.start == "Channels":
        return _pass_in_channels(job, launch, settings)
    archive = _make_archive(job, launch, settings)
    source_uri = spec.source.s3.uri if spec.source is not None and spec.source.s3 is not None else ""
    uri = archive.uri if archive is not None else source_uri
    if not uri:
        return Code()
    if launch.start == "Container" or block.network_isolation:
        return Code(_ARCHIVE_FILE, uri, archive)
    return Code(uri, "", archive)


def _pass_in_channels(job: Job, launch: Launch, settings: RequestSettings) -> Code:
    """Pass code and start script as channels, as in SDK 3 (model_trainer.py, _create_training_job_args)."""
    spec = job.spec
    drivers = make_input_uri(spec, settings, DRIVERS_CHANNEL)
    source_uri = spec.source.s3.uri if spec.source is not None and spec.source.s3 is not None else ""
    channel = source_uri or (make_input_uri(spec, settings, CODE_CHANNEL) if spec.source is not None else "")
    objects = {f"{drivers}/{name}": content for name, content in make_driver_files(job, launch).items()}
    archive_uri = f"{channel}/sourcedir.tar.gz" if channel and not source_uri else ""
    return Code("", channel, Archive(archive_uri, choose_code_key(spec, settings), {}, objects), drivers)


def prepend_unpacking(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that unpacks the code into the toolkit's folder, and then runs `command`."""
    script = f'mkdir -p {CODE_FOLDER} && cd {CODE_FOLDER} && tar -xzf {_ARCHIVE_FILE} && exec "$@"'
    return ("/bin/sh", "-c", script, "sh", *command)


def get_script_command() -> tuple[str, ...]:
    """Return the command for muster's start script in a container without a toolkit."""
    return ("python3", START_SCRIPT)


def _make_archive(job: Job, launch: Launch, settings: RequestSettings) -> Archive | None:
    files = make_start_files(job, launch) if launch.uses_start_script else {}
    source = job.spec.source
    packs_source = source is not None and source.s3 is None
    if not packs_source and not files:
        return None
    return Archive(make_code_uri(job.spec, settings), choose_code_key(job.spec, settings), files)
