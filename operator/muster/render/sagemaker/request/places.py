"""Choose the URIs of a training job's output, checkpoints and code in Amazon S3, as in the SageMaker SDK. Pure."""

from muster.api.s3_uri import S3Uri, parse
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.render.sagemaker.request.settings import RequestSettings
from muster.render.sagemaker.request.training_request import Fields

_COMPRESSION = {"Gzip": "GZIP", "None": "NONE"}


def get_output_uri(spec: Spec, settings: RequestSettings) -> str:
    """Return the output's URI: the job's, or else the root of the default bucket."""
    value = spec.output.s3 if spec.output is not None else None
    return value or f"s3://{settings.default_bucket}/"


def join_uri(uri: str, *parts: str) -> str:
    """Append path segments to `uri`, without duplicate slashes (s3_utils.py, s3_path_join)."""
    location = parse(uri)
    key = "/".join(segment for path in (location.key, *parts) for segment in path.split("/") if segment)
    return str(S3Uri(location.bucket, key))


def render_output(spec: Spec, settings: RequestSettings) -> Fields:
    """Return the OutputDataConfig."""
    block = get_sagemaker_block(spec)
    fields: Fields = {"S3OutputPath": get_output_uri(spec, settings)}
    if block.output_kms_key is not None:
        fields["KmsKeyId"] = block.output_kms_key
    if block.output_compression is not None:
        fields["CompressionType"] = _COMPRESSION[block.output_compression]
    return fields


def render_checkpoint(spec: Spec) -> Fields:
    """Return the CheckpointConfig; empty for a job without checkpoints."""
    uri = spec.checkpoint.s3 if spec.checkpoint is not None else None
    if uri is None:
        return {}
    path = spec.sagemaker.checkpoint_path if spec.sagemaker is not None else None
    return {"S3Uri": uri} if path is None else {"S3Uri": uri, "LocalPath": path}


def make_code_uri(spec: Spec, settings: RequestSettings) -> str:
    """Return the URI of sourcedir.tar.gz, in codeLocation or else in the output's bucket."""
    block = get_sagemaker_block(spec)
    parts = (settings.training_job_name, "source", "sourcedir.tar.gz")
    if block.code_location is not None:
        return join_uri(block.code_location, *parts)
    return join_uri(f"s3://{parse(get_output_uri(spec, settings)).bucket}", *parts)


def make_input_uri(spec: Spec, settings: RequestSettings, channel: str) -> str:
    """Return the URI of a channel that muster adds, in codeLocation or else in the output's bucket."""
    block = get_sagemaker_block(spec)
    base = block.code_location or f"s3://{parse(get_output_uri(spec, settings)).bucket}"
    return join_uri(base, settings.training_job_name, "input", channel)


def choose_code_key(spec: Spec, settings: RequestSettings) -> str:
    """Return the KMS key for the code: the output's key if the code is in the output's bucket, else "".

    The SDK does the same (estimator.py, _stage_user_code_in_s3).
    """
    block = get_sagemaker_block(spec)
    if block.output_kms_key is None:
        return ""
    bucket = parse(get_output_uri(spec, settings)).bucket
    is_other_bucket = block.code_location is not None and parse(block.code_location).bucket != bucket
    return "" if is_other_bucket else block.output_kms_key
