"""Rules about input channels, checkpoints, output and metrics."""

import re
from collections.abc import Iterator

from muster.api import s3_uri
from muster.api.document import FieldPath, quote
from muster.api.spec.data import Input, Volume
from muster.api.spec.job import Spec
from muster.api.validation.rule import Rule, Violation
from muster.api.validation.rules import regexes

_SOURCES = ("hostPath", "persistentVolumeClaim", "nfs", "configMap", "secret")


def _check_channel_variables(spec: Spec) -> Iterator[Violation]:
    channel_by_variable: dict[str, str] = {}
    for index, channel in enumerate(spec.inputs):
        variable = "SM_CHANNEL_" + re.sub(r"[.-]", "_", channel.name).upper()
        first_name = channel_by_variable.setdefault(variable, channel.name)
        if first_name != channel.name:
            yield Violation(("inputs", index, "name"), f"{variable} for {channel.name} and {first_name}")


def _check_metric_regexes(spec: Spec) -> Iterator[Violation]:
    for index, metric in enumerate(spec.metrics):
        problem = regexes.find_regex_problem(metric.regex)
        if problem is not None:
            yield Violation(("metrics", index, "regex"), f"{quote(metric.regex)}, and {problem}")


def _list_volumes(spec: Spec) -> Iterator[tuple[FieldPath, Volume]]:
    for index, channel in enumerate(spec.inputs):
        if channel.volume is not None:
            yield ("inputs", index, "volume"), channel.volume
    yield from _list_writable_volumes(spec)


def _list_writable_volumes(spec: Spec) -> Iterator[tuple[FieldPath, Volume]]:
    if spec.checkpoint is not None and spec.checkpoint.volume is not None:
        yield ("checkpoint", "volume"), spec.checkpoint.volume
    if spec.output is not None and spec.output.volume is not None:
        yield ("output", "volume"), spec.output.volume


def _list_volume_sources(volume: Volume) -> list[str]:
    value = (volume.host_path, volume.persistent_volume_claim, volume.nfs, volume.config_map, volume.secret)
    return [name for name, source in zip(_SOURCES, value, strict=True) if source is not None]


def _check_one_source(spec: Spec) -> Iterator[Violation]:
    for path, volume in _list_volumes(spec):
        sources = _list_volume_sources(volume)
        if len(sources) != 1:
            yield Violation(path, " and ".join(sources) or "none")


def _check_read_only_sources(spec: Spec) -> Iterator[Violation]:
    for path, volume in _list_writable_volumes(spec):
        for source in _list_volume_sources(volume):
            if source in ("configMap", "secret"):
                yield Violation((*path, source), f"a {source}")


def _check_volume_paths(spec: Spec) -> Iterator[Violation]:
    for path, volume in _list_volumes(spec):
        for source, folder in (("hostPath", volume.host_path), ("nfs", volume.nfs)):
            if folder is not None and not _is_absolute(folder.path):
                yield Violation((*path, source, "path"), quote(folder.path))


def _list_data_sources(channel: Input) -> list[str]:
    file_system = channel.sagemaker.file_system if channel.sagemaker is not None else None
    value = {"volume": channel.volume, "s3": channel.s3, "sagemaker.fileSystem": file_system}
    return [name for name, source in value.items() if source is not None]


def _check_one_data_source(spec: Spec) -> Iterator[Violation]:
    for index, channel in enumerate(spec.inputs):
        sources = _list_data_sources(channel)
        if len(sources) != 1:
            yield Violation(("inputs", index), " and ".join(sources) or "none")


def _check_one_output(spec: Spec) -> Iterator[Violation]:
    if spec.output is not None and (spec.output.volume is None) == (spec.output.s3 is None):
        yield Violation(("output",), "none" if spec.output.s3 is None else "volume and s3")


def _check_one_checkpoint(spec: Spec) -> Iterator[Violation]:
    checkpoint = spec.checkpoint
    if checkpoint is not None and checkpoint.volume is not None and checkpoint.s3 is not None:
        yield Violation(("checkpoint",), "volume and s3")


def _check_s3_uris(spec: Spec) -> Iterator[Violation]:
    uris: list[tuple[FieldPath, str | None]] = [
        (("inputs", index, "s3", "uri"), channel.s3.uri)
        for index, channel in enumerate(spec.inputs)
        if channel.s3 is not None
    ]
    uris += [(("checkpoint", "s3"), spec.checkpoint.s3)] if spec.checkpoint is not None else []
    uris += [(("output", "s3"), spec.output.s3)] if spec.output is not None else []
    for path, uri in uris:
        if uri is not None and not s3_uri.is_s3_uri(uri):
            yield Violation(path, quote(uri))


def _is_absolute(path: str) -> bool:
    return path.startswith("/") and ".." not in path.split("/") and "\0" not in path


_ABSOLUTE_CEL = r"self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')"
_WRITABLE_PATHS = ("spec.checkpoint.volume", "spec.output.volume")
_VOLUME_PATHS = ("spec.inputs[].volume", *_WRITABLE_PATHS)

DATA_RULES = (
    Rule(
        schema_paths=("spec.inputs",),
        rationale="Two channels would share one variable, and ranks would read the wrong data.",
        message="channels that differ only in case or in . _ - share one SM_CHANNEL_ variable; rename one",
        find_violations=_check_channel_variables,
        cel="self.all(a, self.exists_one(b, b.name.replace('-', '_').replace('.', '_').upperAscii()"
        " == a.name.replace('-', '_').replace('.', '_').upperAscii()))",
    ),
    Rule(
        schema_paths=("spec.metrics[].regex",),
        rationale="muster matches the expression against every line that the ranks write.",
        message="a regular expression of Python's re with a group around the number",
        find_violations=_check_metric_regexes,
    ),
    Rule(
        schema_paths=("spec.inputs[]",),
        rationale="With two locations, the ranks could read only one of them.",
        message="exactly one of volume, s3 and sagemaker.fileSystem must be set",
        find_violations=_check_one_data_source,
        cel="[has(self.volume), has(self.s3), has(self.sagemaker) && has(self.sagemaker.fileSystem)]"
        ".exists_one(chosen, chosen)",
    ),
    Rule(
        schema_paths=("spec.output",),
        rationale="With two locations, muster could write to only one of them.",
        message="exactly one of volume and s3 must be set",
        find_violations=_check_one_output,
        cel="has(self.volume) != has(self.s3)",
    ),
    Rule(
        schema_paths=("spec.checkpoint",),
        rationale="The volume and S3 would hold different checkpoints, and a restart has to resume from one of them.",
        message="at most one of volume and s3 may be set",
        find_violations=_check_one_checkpoint,
        cel="!has(self.volume) || !has(self.s3)",
    ),
    Rule(
        schema_paths=("spec.inputs[].s3.uri", "spec.checkpoint.s3", "spec.output.s3"),
        rationale="Several programs read the URI, and all of them must derive the same bucket and key.",
        message=s3_uri.MESSAGE,
        find_violations=_check_s3_uris,
        cel=s3_uri.CEL,
    ),
    Rule(
        schema_paths=_VOLUME_PATHS,
        rationale="A channel without data is an empty folder, and scripts would read it as an empty data set.",
        message=f"exactly one of {', '.join(_SOURCES)} must be set, for example hostPath: {{path: /data}}",
        find_violations=_check_one_source,
        cel=f"[{', '.join(f'has(self.{name})' for name in _SOURCES)}].exists_one(chosen, chosen)",
    ),
    Rule(
        schema_paths=_WRITABLE_PATHS,
        rationale="Kubernetes mounts ConfigMaps and Secrets read-only, so the first checkpoint would fail, hours "
        "into the job.",
        message="a configMap or secret can't be written to; use a hostPath, persistentVolumeClaim or nfs",
        find_violations=_check_read_only_sources,
        cel="!has(self.configMap) && !has(self.secret)",
    ),
    Rule(
        schema_paths=tuple(
            f"{volume_path}.{path}" for volume_path in _VOLUME_PATHS for path in ("hostPath.path", "nfs.path")
        ),
        rationale="A relative path would depend on where muster was started, and .. leads out of the intended folder.",
        message="the path must begin with / and must not contain `..`; write it in full",
        find_violations=_check_volume_paths,
        cel=_ABSOLUTE_CEL,
    ),
)
