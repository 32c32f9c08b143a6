"""Convert the inputs of a ModelTrainer and its `train` to the job's inputs. Pure."""

from __future__ import annotations

from muster.api.document import JSON
from muster.importers.sagemaker.translate.file_system import file_system
from muster.importers.sagemaker.translate.reading import Arguments, inside, set_field, shown
from muster.importers.sagemaker.translate.recording import Built, Value


def channels(arguments: Arguments, call: Arguments) -> list[JSON]:
    """The channels of the trainer and of `train`; those of `train` replace the trainer's of the same name."""
    result: dict[str, JSON] = {}
    for source in (arguments, call):
        for value in source.listed("input_data_config"):
            settings = inside(source, "input_data_config", value, "InputData", "Channel")
            if settings is not None:
                name = settings.text("channel_name") or ""
                result[name] = _channel(name, settings)
    return list(result.values())


def _channel(name: str, settings: Arguments) -> JSON:
    channel: dict[str, JSON] = {"name": name}
    set_field(channel, "contentType", settings.text("content_type"))
    options: dict[str, JSON] = {}
    set_field(options, "inputMode", settings.text("input_mode"))
    set_field(options, "compression", settings.text("compression_type"))
    set_field(options, "recordWrapper", settings.text("record_wrapper_type"))
    shuffle = settings.built("shuffle_config", "ShuffleConfig")
    if shuffle is not None:
        set_field(options, "shuffleSeed", shuffle.whole("seed"))
    source = settings.value("data_source")
    if isinstance(source, Built) and source.kind == "DataSource":
        source = _inner(settings, source)
    _add_source(channel, options, settings, source)
    set_field(channel, "sagemaker", options)
    settings.nothing_left("")
    return channel


def _inner(settings: Arguments, source: Built) -> Value:
    inner = inside(settings, "data_source", source, "DataSource")
    if inner is None:
        return None
    result = [inner.value(name) for name in ("s3_data_source", "file_system_data_source")]
    inner.nothing_left("")
    return next((value for value in result if value is not None), None)


def _add_source(channel: dict[str, JSON], options: dict[str, JSON], outer: Arguments, source: Value) -> None:
    if isinstance(source, str):
        if not source.startswith("s3://"):
            where = outer.where("data_source")
            outer.problems.add(where, f"found {shown(source)}, which the SDK uploads; upload it and write s3://...")
        channel["s3"] = {"uri": source}
        # a plain URI is copied, whatever the job's input mode (create_input_data_channel)
        options.setdefault("inputMode", "File")
        return
    settings = inside(outer, "data_source", source, "S3DataSource", "FileSystemDataSource")
    if settings is None or not isinstance(source, Built):
        return
    if source.kind == "FileSystemDataSource":
        options["fileSystem"] = file_system(settings, None)
    else:
        channel["s3"] = _objects(settings, options)
    settings.nothing_left("")


def _objects(settings: Arguments, options: dict[str, JSON]) -> JSON:
    objects: dict[str, JSON] = {"uri": settings.text("s3_uri")}
    distribution = settings.text("s3_data_distribution_type")
    set_field(objects, "distribution", distribution if distribution != "FullyReplicated" else None)
    data_type = settings.text("s3_data_type")
    set_field(options, "dataType", data_type if data_type != "S3Prefix" else None)
    set_field(options, "attributeNames", settings.texts("attribute_names"))
    set_field(options, "instanceGroups", settings.texts("instance_group_names"))
    return objects
