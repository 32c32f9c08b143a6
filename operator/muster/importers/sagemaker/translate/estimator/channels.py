"""Convert the inputs of `fit` to the job's inputs. Pure."""

from __future__ import annotations

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments, describe_value, read_object, set_field
from muster.importers.sagemaker.translate.file_system import convert_file_system
from muster.importers.sagemaker.translate.recording import SdkObject, Value

_DEFAULT_CHANNEL = "training"
"""The SDK's default name of a channel (job.py in sagemaker 2.257.7)."""

_DEFAULT_ACCESS_MODE = "ro"
"""The default access mode of a FileSystemInput (inputs.py in sagemaker 2.257.7)."""


def convert_inputs(call: Arguments) -> list[JSON]:
    """Convert the inputs of an estimator's `fit`, in the script's order."""
    value = call.take_value("inputs")
    if value is None:
        return []
    if isinstance(value, (str, SdkObject)):
        return _convert_channel(call, _DEFAULT_CHANNEL, value)
    if isinstance(value, dict):
        return [
            channel for name, channel_value in value.items() for channel in _convert_channel(call, name, channel_value)
        ]
    call.problems.add(
        call.describe_argument("inputs"),
        f"found {describe_value(value)}; text, a TrainingInput or a dictionary is expected",
    )
    return []


def find_default_input_mode(call_inputs: Value) -> str | None:
    """Return the input mode that a TrainingInput without a channel name sets (estimator.py, _get_train_args)."""
    if isinstance(call_inputs, SdkObject) and call_inputs.class_name == "TrainingInput":
        mode = call_inputs.fields.get("input_mode")
        return mode if isinstance(mode, str) else None
    return None


def convert_model_channel(arguments: Arguments) -> list[JSON]:
    """Convert `model_uri` to a channel."""
    uri, name = arguments.take_text("model_uri"), arguments.take_text("model_channel_name") or "model"
    if uri is None:
        return []
    content_type = "application/x-sagemaker-model"
    return [{"name": name, "contentType": content_type, "s3": {"uri": uri}, "sagemaker": {"inputMode": "File"}}]


def _convert_channel(call: Arguments, name: str, value: Value) -> list[JSON]:
    if isinstance(value, str):
        return [{"name": name, "s3": {"uri": value}}]
    settings = read_object(call, "inputs", value, "TrainingInput", "FileSystemInput")
    if settings is None:
        return []
    channel: dict[str, JSON] = {"name": name}
    set_field(channel, "contentType", settings.take_text("content_type"))
    if isinstance(value, SdkObject) and value.class_name == "FileSystemInput":
        set_field(channel, "sagemaker", {"fileSystem": convert_file_system(settings, _DEFAULT_ACCESS_MODE)})
    else:
        set_field(channel, "s3", _convert_objects(settings))
        set_field(channel, "sagemaker", _convert_options(settings))
    settings.report_unread()
    return [channel]


def _convert_objects(settings: Arguments) -> JSON:
    objects: dict[str, JSON] = {}
    set_field(objects, "uri", settings.take_text("s3_data"))
    distribution = settings.take_text("distribution")
    set_field(objects, "distribution", distribution if distribution != "FullyReplicated" else None)
    return objects


def _convert_options(settings: Arguments) -> JSON:
    options: dict[str, JSON] = {}
    set_field(options, "inputMode", settings.take_text("input_mode"))
    data_type = settings.take_text("s3_data_type")
    set_field(options, "dataType", data_type if data_type != "S3Prefix" else None)
    set_field(options, "attributeNames", settings.take_text_list("attribute_names"))
    set_field(options, "instanceGroups", settings.take_text_list("instance_groups"))
    set_field(options, "compression", settings.take_text("compression"))
    set_field(options, "recordWrapper", settings.take_text("record_wrapping"))
    shuffle = settings.take_object("shuffle_config", "ShuffleConfig")
    if shuffle is not None:
        set_field(options, "shuffleSeed", shuffle.take_integer("seed"))
    return options
