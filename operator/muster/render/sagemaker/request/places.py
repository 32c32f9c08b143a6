"""Locations of a training job's output, checkpoints and code in Amazon S3, as in the SageMaker SDK. Pure."""

from muster.api.s3_uri import S3Uri, parse
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import block_of
from muster.render.sagemaker.request.setting import Setting
from muster.render.sagemaker.request.training_request import Fields

_COMPRESSION = {"Gzip": "GZIP", "None": "NONE"}


def output_uri(spec: Spec, setting: Setting) -> str:
    """The output's location: the job's, or else the root of the default bucket."""
    value = spec.output.s3 if spec.output is not None else None
    return value or f"s3://{setting.default_bucket}/"


def joined(uri: str, *parts: str) -> str:
    """Append path segments to `uri`, without duplicate slashes (s3_utils.py, s3_path_join)."""
    place = parse(uri)
    key = "/".join(part for whole in (place.key, *parts) for part in whole.split("/") if part)
    return str(S3Uri(place.bucket, key))


def output(spec: Spec, setting: Setting) -> Fields:
    """OutputDataConfig."""
    block = block_of(spec)
    fields: Fields = {"S3OutputPath": output_uri(spec, setting)}
    if block.output_kms_key is not None:
        fields["KmsKeyId"] = block.output_kms_key
    if block.output_compression is not None:
        fields["CompressionType"] = _COMPRESSION[block.output_compression]
    return fields


def checkpoint(spec: Spec) -> Fields:
    """CheckpointConfig; empty for a job without checkpoints."""
    uri = spec.checkpoint.s3 if spec.checkpoint is not None else None
    if uri is None:
        return {}
    path = spec.sagemaker.checkpoint_path if spec.sagemaker is not None else None
    return {"S3Uri": uri} if path is None else {"S3Uri": uri, "LocalPath": path}


def code_uri(spec: Spec, setting: Setting) -> str:
    """The URI of sourcedir.tar.gz: in codeLocation, or else in the output's bucket."""
    block = block_of(spec)
    parts = (setting.training_job, "source", "sourcedir.tar.gz")
    if block.code_location is not None:
        return joined(block.code_location, *parts)
    return joined(f"s3://{parse(output_uri(spec, setting)).bucket}", *parts)


def input_uri(spec: Spec, setting: Setting, channel: str) -> str:
    """The URI of a channel that muster adds: in codeLocation, or else in the output's bucket."""
    block = block_of(spec)
    place = block.code_location or f"s3://{parse(output_uri(spec, setting)).bucket}"
    return joined(place, setting.training_job, "input", channel)


def code_key(spec: Spec, setting: Setting) -> str:
    """The KMS key for the code: the output's, if the code is in the output's bucket; else "".

    Source: estimator.py, _stage_user_code_in_s3.
    """
    block = block_of(spec)
    if block.output_kms_key is None:
        return ""
    bucket = parse(output_uri(spec, setting)).bucket
    elsewhere = block.code_location is not None and parse(block.code_location).bucket != bucket
    return "" if elsewhere else block.output_kms_key
