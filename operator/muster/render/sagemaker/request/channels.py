"""Render the job's channels, and a channel for its code if necessary. Pure."""

from muster.api.document import JSON
from muster.api.spec.data import Input
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.channels import ChannelOptions, FileSystem
from muster.api.spec.sagemaker.launch import uses_toolkit
from muster.render.sagemaker.request.code import CODE_CHANNEL, Code
from muster.render.sagemaker.request.drivers import DRIVERS_CHANNEL
from muster.render.sagemaker.request.training_request import Fields

_ACCESS = {"ReadOnly": "ro", "ReadWrite": "rw"}


def render_channels(spec: Spec, source: Code) -> list[JSON]:
    """Return the InputDataConfig."""
    result: list[JSON] = [_render_channel(channel) for channel in spec.inputs]
    if source.drivers:
        return [*result, *_render_own_channels(spec, source)]
    if source.channel:
        result.append(_render_code_channel(spec, source))
    return result


def _render_code_channel(spec: Spec, source: Code) -> Fields:
    block = get_sagemaker_block(spec)
    fields: Fields = {"ChannelName": CODE_CHANNEL, "DataSource": _render_s3(source.channel, "FullyReplicated")}
    if block.input_mode == "File" or uses_toolkit(block):
        return fields
    # Without a toolkit, a container unpacks the code from a file.
    return {**fields, "InputMode": "File"}


def _render_own_channels(spec: Spec, source: Code) -> list[JSON]:
    """Return the channels for the code and the start script.

    SageMaker requires instance groups for all channels or for none.
    """
    block = get_sagemaker_block(spec)
    has_groups = any(channel.sagemaker is not None and channel.sagemaker.instance_groups for channel in spec.inputs)
    groups = tuple(group.name for group in block.instance_groups) if has_groups else ()
    uris = {CODE_CHANNEL: source.channel, DRIVERS_CHANNEL: source.drivers}
    return [
        {
            "ChannelName": name,
            "DataSource": _render_s3(uri, "FullyReplicated", ChannelOptions(instance_groups=groups)),
            "InputMode": "File",
        }
        for name, uri in uris.items()
        if uri
    ]


def _render_channel(channel: Input) -> Fields:
    options = channel.sagemaker or ChannelOptions()
    fields: Fields = {"ChannelName": channel.name, "DataSource": _render_data_source(channel, options)}
    optional: dict[str, JSON] = {
        "ContentType": channel.content_type,
        "CompressionType": options.compression,
        "RecordWrapperType": options.record_wrapper,
        "InputMode": options.input_mode,
        "ShuffleConfig": None if options.shuffle_seed is None else {"Seed": options.shuffle_seed},
    }
    return {**fields, **{name: value for name, value in optional.items() if value is not None}}


def _render_data_source(channel: Input, options: ChannelOptions) -> Fields:
    if options.file_system is not None:
        return {"FileSystemDataSource": _render_file_system(options.file_system)}
    if channel.s3 is None:
        return {}
    return _render_s3(channel.s3.uri, channel.s3.distribution, options)


def _render_s3(uri: str, distribution: str, options: ChannelOptions | None = None) -> Fields:
    selected = options or ChannelOptions()
    fields: Fields = {"S3DataType": selected.data_type, "S3Uri": uri, "S3DataDistributionType": distribution}
    if selected.attribute_names:
        fields["AttributeNames"] = list(selected.attribute_names)
    if selected.instance_groups:
        fields["InstanceGroupNames"] = list(selected.instance_groups)
    return {"S3DataSource": fields}


def _render_file_system(file_system: FileSystem) -> Fields:
    return {
        "FileSystemId": file_system.id,
        "FileSystemType": file_system.type,
        "DirectoryPath": file_system.path,
        "FileSystemAccessMode": _ACCESS[file_system.access],
    }
