"""Rules about a SageMaker job's data: channels, locations in Amazon S3, Debugger and profiler."""

from collections.abc import Iterator

from muster.api import s3_uri
from muster.api.document import Path, quoted
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import obstacle_to_debugger, sagemaker_blocks
from muster.api.spec.sagemaker.channels import ChannelOptions
from muster.api.spec.sagemaker.debug import Debugger, Profiler
from muster.api.validation.rule import Breach, Rule

MAX_TAG_CHARS = 128
"""TagKey in botocore's service model of 2017-07-24."""

_RESERVED_TAGS = ("aws:", "muster.dev/")


def _volumes(spec: Spec) -> Iterator[Breach]:
    if spec.backend != "SageMaker":
        return
    for index, channel in enumerate(spec.inputs):
        if channel.volume is not None:
            yield Breach(("inputs", index, "volume"), "one")
    if spec.checkpoint is not None and spec.checkpoint.volume is not None:
        yield Breach(("checkpoint", "volume"), "one")
    if spec.output is not None and spec.output.volume is not None:
        yield Breach(("output", "volume"), "one")


def _file_systems(spec: Spec) -> Iterator[Breach]:
    if spec.backend == "SageMaker":
        return
    for index, channel in enumerate(spec.inputs):
        if channel.sagemaker is not None and channel.sagemaker.file_system is not None:
            yield Breach(("inputs", index, "sagemaker", "fileSystem"), f"one with backend: {spec.backend}")


def _only_there(spec: Spec) -> Iterator[Breach]:
    if spec.backend == "SageMaker":
        return
    for index, channel in enumerate(spec.inputs):
        options = channel.sagemaker or ChannelOptions()
        if options.data_type != "S3Prefix":
            yield Breach(("inputs", index, "sagemaker", "dataType"), options.data_type)


def _file_system_options(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        for index, channel in enumerate(spec.inputs):
            place = channel.sagemaker.file_system if channel.sagemaker is not None else None
            if place is not None and block.vpc is None:
                yield Breach(("inputs", index, "sagemaker", "fileSystem"), "one without sagemaker.vpc")
            if place is not None and not place.path.startswith("/"):
                yield Breach(("inputs", index, "sagemaker", "fileSystem", "path"), quoted(place.path))


def _lost_options(spec: Spec) -> Iterator[Breach]:
    for index, channel in enumerate(spec.inputs):
        options = channel.sagemaker or ChannelOptions()
        at: Path = ("inputs", index, "sagemaker")
        plain = ChannelOptions(file_system=options.file_system, input_mode=options.input_mode)
        if channel.s3 is None and options != plain:
            yield Breach(at, "options of objects in S3 for other data")
        if options.attribute_names and options.data_type != "AugmentedManifestFile":
            yield Breach((*at, "attributeNames"), f"some with dataType: {options.data_type}")


def _channel_groups(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        names = [group.name for group in block.instance_groups]
        for index, channel in enumerate(spec.inputs):
            for name in channel.sagemaker.instance_groups if channel.sagemaker is not None else ():
                if name not in names:
                    yield Breach(("inputs", index, "sagemaker", "instanceGroups"), quoted(name))


def _uris(spec: Spec) -> Iterator[Breach]:
    block = spec.sagemaker
    if block is None:
        return
    places: list[tuple[Path, str | None]] = [
        (("codeLocation",), block.code_location),
        (("debugger", "s3"), block.debugger.s3),
        (("profiler", "s3"), block.profiler.s3),
        (("tensorBoard", "s3"), block.tensor_board.s3 if block.tensor_board is not None else None),
        *((("debugger", "rules", index, "s3"), rule.s3) for index, rule in enumerate(block.debugger.rules)),
        *((("profiler", "rules", index, "s3"), rule.s3) for index, rule in enumerate(block.profiler.rules)),
    ]
    for path, uri in places:
        if uri is not None and not s3_uri.is_s3(uri):
            yield Breach(("sagemaker", *path), quoted(uri))


def _tags(spec: Spec) -> Iterator[Breach]:
    for name in spec.sagemaker.tags if spec.sagemaker is not None else ():
        if not 0 < len(name) <= MAX_TAG_CHARS or name.lower().startswith(_RESERVED_TAGS):
            yield Breach(("sagemaker", "tags", name), quoted(name))


def _unused_debugging(spec: Spec) -> Iterator[Breach]:
    block = spec.sagemaker
    if block is None:
        return
    debugger, profiler = block.debugger, block.profiler
    if debugger.hook == "Disabled" and debugger != Debugger(hook="Disabled", rules=debugger.rules):
        yield Breach(("sagemaker", "debugger"), "settings with hook: Disabled")
    if profiler.mode in ("Disabled", "Unset") and profiler != Profiler(mode=profiler.mode):
        yield Breach(("sagemaker", "profiler"), f"settings with mode: {profiler.mode}")


def _lost_debugger(spec: Spec) -> Iterator[Breach]:
    for block in sagemaker_blocks(spec):
        obstacle, debugger = obstacle_to_debugger(spec), block.debugger
        if obstacle == "parameterServer" and debugger not in (Debugger(), Debugger(hook="Disabled")):
            yield Breach(("sagemaker", "debugger"), "settings with parameterServer")
        if obstacle == "checkpointPath" and debugger.hook == "Auto" and debugger != Debugger(rules=debugger.rules):
            yield Breach(("sagemaker", "debugger"), "settings of hook: Auto with checkpointPath")


def _rule_names(spec: Spec) -> Iterator[Breach]:
    block = spec.sagemaker
    if block is None:
        return
    for field, rules in (("debugger", block.debugger.rules), ("profiler", block.profiler.rules)):
        for index, rule in enumerate(rules):
            if rule.name in [other.name for other in rules[:index]]:
                yield Breach(("sagemaker", field, "rules", index, "name"), f"{quoted(rule.name)} twice")


SAGEMAKER_DATA_RULES = (
    Rule(
        places=("spec",),
        why="muster would download the list of objects as the data itself.",
        sentence="on Kubernetes s3.uri has to be a key prefix; set one, or use backend: SageMaker",
        breaches=_only_there,
    ),
    Rule(
        places=("spec",),
        why="SageMaker's instances are outside the cluster and can't mount its volumes.",
        sentence="SageMaker can't mount a volume; use s3",
        breaches=_volumes,
    ),
    Rule(
        places=("spec.inputs[]",),
        why="Only SageMaker mounts a fileSystem.",
        sentence="on Kubernetes use volume, for example a persistentVolumeClaim of the file system",
        breaches=_file_systems,
    ),
    Rule(
        places=("spec.inputs[]",),
        why="SageMaker mounts it through the job's network, by the folder's whole path.",
        sentence="sagemaker.vpc is needed, with subnets that reach the file system, and a path that begins with /",
        breaches=_file_system_options,
    ),
    Rule(
        places=("spec.inputs[].sagemaker",),
        why="The options would have no effect.",
        sentence="these options are for s3, attributeNames for dataType: AugmentedManifestFile; remove them",
        breaches=_lost_options,
    ),
    Rule(
        places=("spec.inputs[].sagemaker",),
        why="SageMaker refuses the job.",
        sentence="the name of one of sagemaker.instanceGroups is expected",
        breaches=_channel_groups,
    ),
    Rule(
        places=(
            "spec.sagemaker.codeLocation",
            "spec.sagemaker.tensorBoard.s3",
            *(
                f"spec.sagemaker.{field}.{place}"
                for field in ("debugger", "profiler")
                for place in ("s3", "rules[].s3")
            ),
        ),
        why="Several programs read it, and all of them must derive the same bucket and key.",
        sentence=f"a folder of Amazon S3: {s3_uri.SENTENCE}",
        breaches=_uris,
        cel=s3_uri.CEL,
    ),
    Rule(
        places=("spec.sagemaker.tags",),
        why="SageMaker refuses the job, or muster would mistake the tag for its own.",
        sentence="a tag's name has 1 to 128 characters, and begins with neither aws: nor muster.dev/",
        breaches=_tags,
    ),
    Rule(
        places=("spec.sagemaker",),
        why="The settings would have no effect.",
        sentence="remove them, or enable it",
        breaches=_unused_debugging,
    ),
    Rule(
        places=("spec.sagemaker.debugger",),
        why="SageMaker Debugger doesn't work with parameter servers, nor with a custom folder for checkpoints, and "
        "the SageMaker SDK drops it silently.",
        sentence="remove these settings",
        breaches=_lost_debugger,
    ),
    Rule(
        places=("spec.sagemaker",),
        why="SageMaker refuses the job.",
        sentence="each rule's name may occur only once; rename one",
        breaches=_rule_names,
    ),
)
