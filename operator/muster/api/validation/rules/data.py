"""Rules about what the ranks read and write: input channels, checkpoints, output and metrics."""

import re
from collections.abc import Iterator

from muster.api import s3_uri
from muster.api.document import Path, quoted
from muster.api.spec.data import Input, Volume
from muster.api.spec.job import Spec
from muster.api.validation.rule import Breach, Rule
from muster.api.validation.rules import regexes

_SOURCES = ("hostPath", "persistentVolumeClaim", "nfs", "configMap", "secret")


def _channel_variables(spec: Spec) -> Iterator[Breach]:
    visited: dict[str, str] = {}
    for index, channel in enumerate(spec.inputs):
        variable = "SM_CHANNEL_" + re.sub(r"[.-]", "_", channel.name).upper()
        other = visited.setdefault(variable, channel.name)
        if other != channel.name:
            yield Breach(("inputs", index, "name"), f"{variable} for {channel.name} and {other}")


def _metric_regexes(spec: Spec) -> Iterator[Breach]:
    for index, metric in enumerate(spec.metrics):
        objection = regexes.objection(metric.regex)
        if objection is not None:
            yield Breach(("metrics", index, "regex"), f"{quoted(metric.regex)}, and {objection}")


def _volumes(spec: Spec) -> Iterator[tuple[Path, Volume]]:
    for index, channel in enumerate(spec.inputs):
        if channel.volume is not None:
            yield ("inputs", index, "volume"), channel.volume
    yield from _written_volumes(spec)


def _written_volumes(spec: Spec) -> Iterator[tuple[Path, Volume]]:
    if spec.checkpoint is not None and spec.checkpoint.volume is not None:
        yield ("checkpoint", "volume"), spec.checkpoint.volume
    if spec.output is not None and spec.output.volume is not None:
        yield ("output", "volume"), spec.output.volume


def _sources(volume: Volume) -> list[str]:
    value = (volume.host_path, volume.persistent_volume_claim, volume.nfs, volume.config_map, volume.secret)
    return [name for name, source in zip(_SOURCES, value, strict=True) if source is not None]


def _one_source(spec: Spec) -> Iterator[Breach]:
    for path, volume in _volumes(spec):
        sources = _sources(volume)
        if len(sources) != 1:
            yield Breach(path, " and ".join(sources) or "none of them")


def _read_only_sources(spec: Spec) -> Iterator[Breach]:
    for path, volume in _written_volumes(spec):
        for source in _sources(volume):
            if source in ("configMap", "secret"):
                yield Breach((*path, source), "one")


def _volume_paths(spec: Spec) -> Iterator[Breach]:
    for at, volume in _volumes(spec):
        for source, folder in (("hostPath", volume.host_path), ("nfs", volume.nfs)):
            if folder is not None and not _is_plain_absolute(folder.path):
                yield Breach((*at, source, "path"), quoted(folder.path))


def _places(channel: Input) -> list[str]:
    file_system = channel.sagemaker.file_system if channel.sagemaker is not None else None
    value = {"volume": channel.volume, "s3": channel.s3, "sagemaker.fileSystem": file_system}
    return [name for name, place in value.items() if place is not None]


def _one_place(spec: Spec) -> Iterator[Breach]:
    for index, channel in enumerate(spec.inputs):
        places = _places(channel)
        if len(places) != 1:
            yield Breach(("inputs", index), " and ".join(places) or "none of them")


def _one_output(spec: Spec) -> Iterator[Breach]:
    if spec.output is not None and (spec.output.volume is None) == (spec.output.s3 is None):
        yield Breach(("output",), "neither of them" if spec.output.s3 is None else "volume and s3")


def _one_checkpoint(spec: Spec) -> Iterator[Breach]:
    kept = spec.checkpoint
    if kept is not None and kept.volume is not None and kept.s3 is not None:
        yield Breach(("checkpoint",), "volume and s3")


def _s3_uris(spec: Spec) -> Iterator[Breach]:
    places: list[tuple[Path, str | None]] = [
        (("inputs", index, "s3", "uri"), channel.s3.uri)
        for index, channel in enumerate(spec.inputs)
        if channel.s3 is not None
    ]
    places += [(("checkpoint", "s3"), spec.checkpoint.s3)] if spec.checkpoint is not None else []
    places += [(("output", "s3"), spec.output.s3)] if spec.output is not None else []
    for path, uri in places:
        if uri is not None and not s3_uri.is_s3(uri):
            yield Breach(path, quoted(uri))


def _is_plain_absolute(path: str) -> bool:
    return path.startswith("/") and ".." not in path.split("/") and "\0" not in path


_ABSOLUTE_CEL = r"self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')"
_WRITTEN = ("spec.checkpoint.volume", "spec.output.volume")
_ALL = ("spec.inputs[].volume", *_WRITTEN)

DATA_RULES = (
    Rule(
        places=("spec.inputs",),
        why="Both folders would share one variable, and a rank would read the wrong data.",
        sentence="channels that differ only in case or in . _ - share one SM_CHANNEL_ variable; rename one",
        breaches=_channel_variables,
        cel="self.all(a, self.exists_one(b, b.name.replace('-', '_').replace('.', '_').upperAscii()"
        " == a.name.replace('-', '_').replace('.', '_').upperAscii()))",
    ),
    Rule(
        places=("spec.metrics[].regex",),
        why="muster matches it against every line that the ranks write.",
        sentence="a regular expression of Python's re with a group around the number",
        breaches=_metric_regexes,
    ),
    Rule(
        places=("spec.inputs[]",),
        why="With two places it would be unclear which one applies.",
        sentence="exactly one of volume, s3 and sagemaker.fileSystem must be set",
        breaches=_one_place,
        cel="[has(self.volume), has(self.s3), has(self.sagemaker) && has(self.sagemaker.fileSystem)]"
        ".exists_one(chosen, chosen)",
    ),
    Rule(
        places=("spec.output",),
        why="With two places it would be unclear which one applies.",
        sentence="exactly one of volume and s3 must be set",
        breaches=_one_output,
        cel="has(self.volume) != has(self.s3)",
    ),
    Rule(
        places=("spec.checkpoint",),
        why="Two places would hold different checkpoints, and a restart has to resume from one.",
        sentence="at most one of volume and s3 may be set",
        breaches=_one_checkpoint,
        cel="!has(self.volume) || !has(self.s3)",
    ),
    Rule(
        places=("spec.inputs[].s3.uri", "spec.checkpoint.s3", "spec.output.s3"),
        why="Several programs read it, and all of them must derive the same bucket and key.",
        sentence=s3_uri.SENTENCE,
        breaches=_s3_uris,
        cel=s3_uri.CEL,
    ),
    Rule(
        places=_ALL,
        why="A channel without data is an empty folder, and scripts would read it as an empty data set.",
        sentence=f"exactly one of {', '.join(_SOURCES)} must be set, for example hostPath: {{path: /data}}",
        breaches=_one_source,
        cel=f"[{', '.join(f'has(self.{name})' for name in _SOURCES)}].exists_one(chosen, chosen)",
    ),
    Rule(
        places=_WRITTEN,
        why="Kubernetes mounts them read-only: the first checkpoint would fail, hours into the job.",
        sentence="a configMap or secret can't be written to; name a hostPath, persistentVolumeClaim or nfs",
        breaches=_read_only_sources,
        cel="!has(self.configMap) && !has(self.secret)",
    ),
    Rule(
        places=tuple(f"{place}.{path}" for place in _ALL for path in ("hostPath.path", "nfs.path")),
        why="A relative path would depend on where muster was started, and .. leads out of the intended folder.",
        sentence="the path must begin with / and must not contain ..; write it in full",
        breaches=_volume_paths,
        cel=_ABSOLUTE_CEL,
    ),
)
