"""The job's code: which archive the containers get, where it lies, and how they are told. Pure."""

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
"""The channel that brings the code where the containers can't fetch it (estimator.py, EstimatorBase)."""

CODE_FOLDER = "/opt/ml/code"
_ARCHIVE_FILE = f"/opt/ml/input/data/{CODE_CHANNEL}/sourcedir.tar.gz"


@dataclass(frozen=True)
class Code:
    """`directory` is what the toolkit is told, `channel` what comes as a channel: "" where it isn't so.

    `drivers` is the channel of muster's start script. `archive` None: muster has nothing to pack.
    """

    directory: str = ""
    channel: str = ""
    archive: Archive | None = None
    drivers: str = ""


def code(job: Job, how: Launch, setting: Setting) -> Code:
    """How the job's code reaches the containers."""
    spec, block = job.spec, block_of(job.spec)
    if how.start == "Channels":
        return _in_channels(job, how, setting)
    archive = _archive(job, how, setting)
    value = spec.source.s3.uri if spec.source is not None and spec.source.s3 is not None else ""
    uri = archive.uri if archive is not None else value
    if not uri:
        return Code()
    if how.start == "Container" or block.network_isolation:
        return Code(_ARCHIVE_FILE, uri, archive)
    return Code(uri, "", archive)


def _in_channels(job: Job, how: Launch, setting: Setting) -> Code:
    """Code and start script as SDK 3 has them (model_trainer.py, _create_training_job_args)."""
    spec = job.spec
    drivers = input_uri(spec, setting, DRIVERS_CHANNEL)
    own = spec.source.s3.uri if spec.source is not None and spec.source.s3 is not None else ""
    channel = own or (input_uri(spec, setting, CODE_CHANNEL) if spec.source is not None else "")
    objects = {f"{drivers}/{name}": content for name, content in driver_files(job, how).items()}
    packed = f"{channel}/sourcedir.tar.gz" if channel and not own else ""
    return Code("", channel, Archive(packed, code_key(spec, setting), {}, objects), drivers)


def bootstrap(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command of a container that unpacks its code first, into the folder where the toolkit would have it."""
    steps = f'mkdir -p {CODE_FOLDER} && cd {CODE_FOLDER} && tar -xzf {_ARCHIVE_FILE} && exec "$@"'
    return ("/bin/sh", "-c", steps, "sh", *command)


def script_command() -> tuple[str, ...]:
    """What runs muster's start script in a container without a toolkit."""
    return ("python3", START_SCRIPT)


def _archive(job: Job, how: Launch, setting: Setting) -> Archive | None:
    files = start_files(job, how) if how.by_script else {}
    source = job.spec.source
    packs_source = source is not None and source.s3 is None
    if not packs_source and not files:
        return None
    return Archive(code_uri(job.spec, setting), code_key(job.spec, setting), files)
