"""Convert the inputs of a ModelTrainer and its `train` to the job's inputs. Pure."""

from __future__ import annotations

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments, describe_value, read_object, set_field
from muster.importers.sagemaker.translate.file_system import convert_file_system
from muster.importers.sagemaker.translate.recording import SdkObject, Value


def convert_channels(arguments: Arguments, call: Arguments) -> list[JSON]:
    """Convert the channels of the trainer and of `train`. Channels of `train` take precedence."""
    result: dict[str, JSON] = {}
    for source in (arguments, call):
        for value in source.take_list("input_data_config"):
            settings = read_object(source, "input_data_config", value, "InputData", "Channel")
            if settings is not None:
                name = settings.take_text("channel_name") or ""
                result[name] = _convert_channel(name, settings)
    return list(result.values())


def _convert_channel(name: str, settings: Arguments) -> JSON:
    channel: dict[str, JSON] = {"name": name}
    set_field(channel, "contentType", settings.take_text("content_type"))
    options: dict[str, JSON] = {}
    set_field(options, "inputMode", settings.take_text("input_mode"))
    set_field(options, "compression", settings.take_text("compression_type"))
    set_field(options, "recordWrapper", settings.take_text("record_wrapper_type"))
    shuffle = settings.take_object("shuffle_config", "ShuffleConfig")
    if shuffle is not None:
        set_field(options, "shuffleSeed", shuffle.take_integer("seed"))
    source = settings.take_value("data_source")
    if isinstance(source, SdkObject) and source.class_name == "DataSource":
        source = _unwrap_source(settings, source)
    _add_source(channel, options, settings, source)
    set_field(channel, "sagemaker", options)
    settings.report_unread()
    return channel


def _unwrap_source(settings: Arguments, source: SdkObject) -> Value:
    source_arguments = read_object(settings, "data_source", source, "DataSource")
    if source_arguments is None:
        return None
    result = [source_arguments.take_value(name) for name in ("s3_data_source", "file_system_data_source")]
    source_arguments.report_unread()
    return next((value for value in result if value is not None), None)


def _add_source(
    channel: dict[str, JSON], options: dict[str, JSON], channel_arguments: Arguments, source: Value
) -> None:
    if isinstance(source, str):
        if not source.startswith("s3://"):
            location = channel_arguments.describe_argument("data_source")
            channel_arguments.problems.add(
                location,
                f"found {describe_value(source)}, which the SDK uploads; upload the data and write its URI, s3://...",
            )
        channel["s3"] = {"uri": source}
        # The SDK sets File for a URI, even if the job has another input mode (create_input_data_channel).
        options.setdefault("inputMode", "File")
        return
    settings = read_object(channel_arguments, "data_source", source, "S3DataSource", "FileSystemDataSource")
    if settings is None or not isinstance(source, SdkObject):
        return
    if source.class_name == "FileSystemDataSource":
        options["fileSystem"] = convert_file_system(settings, None)
    else:
        channel["s3"] = _convert_objects(settings, options)
    settings.report_unread()


def _convert_objects(settings: Arguments, options: dict[str, JSON]) -> JSON:
    objects: dict[str, JSON] = {"uri": settings.take_text("s3_uri")}
    distribution = settings.take_text("s3_data_distribution_type")
    set_field(objects, "distribution", distribution if distribution != "FullyReplicated" else None)
    data_type = settings.take_text("s3_data_type")
    set_field(options, "dataType", data_type if data_type != "S3Prefix" else None)
    set_field(options, "attributeNames", settings.take_text_list("attribute_names"))
    set_field(options, "instanceGroups", settings.take_text_list("instance_group_names"))
    return objects
