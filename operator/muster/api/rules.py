"""What a resource has to keep to beyond its fields' types: an ordered list of rules, each with its why.

Where CEL can say a rule, the CRD carries it with the same sentence, so that the API server refuses what muster would
refuse. The checks here stay: an old CRD may have let something through.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from muster.api import interfaces, regexes, reserved
from muster.api.document import Path, quoted
from muster.api.spec import MAX_WORLD, Spec, Volume
from muster_worker.contract import RENDEZVOUS_PREFIXES, RENDEZVOUS_VARIABLES, is_rendezvous_variable

_HYPERPARAMETER = re.compile(r"[^\s=\x00-\x1f-][^\s=\x00-\x1f]{0,255}")


@dataclass(frozen=True)
class Breach:
    """Where a spec breaks a rule, below `spec`, and what was found there."""

    path: Path
    found: str


@dataclass(frozen=True)
class Rule:
    """`sentence` says what is allowed and what to do. `cel`, if any, judges each value at `places` of the schema."""

    places: tuple[str, ...]
    why: str
    sentence: str
    breaches: Callable[[Spec], Iterable[Breach]]
    cel: str | None = None


def _launchers(spec: Spec) -> Iterator[Breach]:
    chosen = [name for name in ("torchrun", "direct", "perNode") if _is_chosen(spec, name)]
    if len(chosen) != 1:
        yield Breach(("launcher",), " and ".join(chosen) or "none of them")


def _is_chosen(spec: Spec, name: str) -> bool:
    launcher = spec.launcher
    return {"torchrun": launcher.torchrun, "direct": launcher.direct, "perNode": launcher.per_node}[name] is not None


def _torchrun_options(spec: Spec) -> Iterator[Breach]:
    args = spec.launcher.torchrun.args if spec.launcher.torchrun is not None else ()
    for index, argument in enumerate(args):
        if reserved.is_torchrun_option(argument):
            yield Breach(("launcher", "torchrun", "args", index), quoted(argument))


def _torchrun_words(spec: Spec) -> Iterator[Breach]:
    args = spec.launcher.torchrun.args if spec.launcher.torchrun is not None else ()
    for index, argument in enumerate(args):
        follows_option = index > 0 and args[index - 1].startswith("-") and "=" not in args[index - 1]
        if not argument.startswith("-") and not follows_option:
            yield Breach(("launcher", "torchrun", "args", index), quoted(argument))


def _empty_command(spec: Spec) -> Iterator[Breach]:
    if not spec.command[0].strip():
        yield Breach(("command", 0), quoted(spec.command[0]))


def _launcher_in_launcher(spec: Spec) -> Iterator[Breach]:
    if spec.launcher.per_node is None and posixpath.basename(spec.command[0]) in reserved.LAUNCHERS:
        yield Breach(("command", 0), quoted(spec.command[0]))


def _null_characters(spec: Spec) -> Iterator[Breach]:
    texts: list[tuple[Path, str]] = [(("command", index), word) for index, word in enumerate(spec.command)]
    texts += [(("env", index, "value"), variable.value) for index, variable in enumerate(spec.env)]
    texts += [(("hyperparameters", name), str(value)) for name, value in spec.hyperparameters.items()]
    for path, text in texts:
        if "\0" in text:
            yield Breach(path, "one")


def _reserved_variables(spec: Spec) -> Iterator[Breach]:
    for index, variable in enumerate(spec.env):
        if is_rendezvous_variable(variable.name):
            yield Breach(("env", index, "name"), variable.name)


def _repeated_names(spec: Spec) -> Iterator[Breach]:
    lists = {
        "env": [variable.name for variable in spec.env],
        "metrics": [metric.name for metric in spec.metrics],
        "inputs": [channel.name for channel in spec.inputs],
    }
    for field, names in lists.items():
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Breach((field, index, "name"), f"{quoted(name)} twice")


def _channel_variables(spec: Spec) -> Iterator[Breach]:
    seen: dict[str, str] = {}
    for index, channel in enumerate(spec.inputs):
        variable = "SM_CHANNEL_" + re.sub(r"[.-]", "_", channel.name).upper()
        other = seen.setdefault(variable, channel.name)
        if other != channel.name:
            yield Breach(("inputs", index, "name"), f"{variable} for {channel.name} and {other}")


def _hyperparameter_names(spec: Spec) -> Iterator[Breach]:
    for name in spec.hyperparameters:
        if not _HYPERPARAMETER.fullmatch(name):
            yield Breach(("hyperparameters", name), quoted(name))


def _metric_regexes(spec: Spec) -> Iterator[Breach]:
    for index, metric in enumerate(spec.metrics):
        objection = regexes.objection(metric.regex)
        if objection is not None:
            yield Breach(("metrics", index, "regex"), f"{quoted(metric.regex)}, and {objection}")


def _written_volumes(spec: Spec) -> Iterator[tuple[Path, Volume]]:
    for index, channel in enumerate(spec.inputs):
        yield ("inputs", index, "volume"), channel.volume
    if spec.checkpoint is not None and spec.checkpoint.volume is not None:
        yield ("checkpoint", "volume"), spec.checkpoint.volume


def _volumes(spec: Spec) -> Iterator[Breach]:
    for path, volume in _written_volumes(spec):
        if volume.host_path is None:
            yield Breach(path, "none")


def _host_paths(spec: Spec) -> Iterator[Breach]:
    for path, volume in _written_volumes(spec):
        if volume.host_path is not None and not _is_plain_absolute(volume.host_path.path):
            yield Breach((*path, "hostPath", "path"), quoted(volume.host_path.path))


def _is_plain_absolute(path: str) -> bool:
    return path.startswith("/") and ".." not in path.split("/") and "\0" not in path


def _interface(spec: Spec) -> Iterator[Breach]:
    objection = interfaces.objection(spec.network.interface)
    if objection is not None:
        yield Breach(("network", "interface"), f"{quoted(spec.network.interface)}, and {objection}")


def _world(spec: Spec) -> Iterator[Breach]:
    if spec.procs_per_node != "Auto" and spec.nodes * spec.procs_per_node > MAX_WORLD:
        yield Breach(("nodes",), f"{spec.nodes} nodes of {spec.procs_per_node} ranks")


_ABSOLUTE_CEL = r"self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')"
_OPTION_PATTERN = "|".join(option.replace("-", "[-_]") for option in reserved.TORCHRUN_OPTIONS)
_NAMES_CEL = interfaces.NAMES.replace("\\", "\\\\")

RULES = (
    Rule(
        places=("spec.launcher",),
        why="Two launchers would start the ranks twice, none never.",
        sentence="exactly one of torchrun, direct and perNode must be set, for example torchrun: {}",
        breaches=_launchers,
        cel="[has(self.torchrun), has(self.direct), has(self.perNode)].exists_one(chosen, chosen)",
    ),
    Rule(
        places=("spec.launcher.torchrun.args[]",),
        why="A second rendezvous or world would contradict the one that the status speaks of.",
        sentence="muster sets this option of torchrun itself, from nodes, procsPerNode and command; remove it",
        breaches=_torchrun_options,
        cel=f"!self.matches('^(-m.*|-h.*|--|--({_OPTION_PATTERN})(=.*)?)$')",
    ),
    Rule(
        places=("spec.launcher.torchrun.args",),
        why="torchrun would take the first word that belongs to no option for the script.",
        sentence="torchrun's options begin with a dash; the script and its arguments belong in spec.command",
        breaches=_torchrun_words,
        cel="self.size() == 0 || self[0].startsWith('-')",
    ),
    Rule(
        places=("spec.command",),
        why="Nothing can be started without a name.",
        sentence="the first word names the program to start",
        breaches=_empty_command,
        cel=r"self.size() == 0 || self[0].matches('[^\\s]')",
    ),
    Rule(
        places=("spec",),
        why="Each rank would become a launcher of as many ranks again.",
        sentence="this command starts ranks itself: name the script (python, train.py), or use launcher: {perNode: {}}",
        breaches=_launcher_in_launcher,
        cel="has(self.launcher.perNode) || self.command.size() == 0"
        f" || !self.command[0].matches('(^|/)({'|'.join(reserved.LAUNCHERS)})$')",
    ),
    Rule(
        places=("spec",),
        why="The system ends a word at it, so that a part would be lost.",
        sentence="the null character can't be part of a program's arguments or environment; remove it",
        breaches=_null_characters,
    ),
    Rule(
        places=("spec.env[].name",),
        why="Ranks told another world or rendezvous than their peers' wait for ever.",
        sentence="muster sets this variable itself; choose another name",
        breaches=_reserved_variables,
        cel=f"!(self in [{', '.join(repr(name) for name in RENDEZVOUS_VARIABLES)}])"
        f" && !self.matches('^({'|'.join(RENDEZVOUS_PREFIXES)})')",
    ),
    Rule(
        places=("spec",),
        why="One of the two would be lost.",  # the CRD says it by its list maps
        sentence="each name may be given once; remove or rename one",
        breaches=_repeated_names,
    ),
    Rule(
        places=("spec.inputs",),
        why="Both folders would share one variable, and a rank would read the wrong data.",
        sentence="channels that differ only in case or in . _ - share one SM_CHANNEL_ variable; rename one",
        breaches=_channel_variables,
        cel="self.all(a, self.exists_one(b, b.name.replace('-', '_').replace('.', '_').upperAscii()"
        " == a.name.replace('-', '_').replace('.', '_').upperAscii()))",
    ),
    Rule(
        places=("spec.hyperparameters",),
        why="They become --name value; another name would change what the options around it mean.",
        sentence="a name has 1 to 256 characters, none of them a space or =, and doesn't begin with a dash",
        breaches=_hyperparameter_names,
    ),
    Rule(
        places=("spec.metrics[].regex",),
        why="It is run on every line that the ranks write.",
        sentence="a regular expression of Python's re with a group around the number",
        breaches=_metric_regexes,
    ),
    Rule(
        places=("spec.inputs[].volume", "spec.checkpoint.volume"),
        why="A channel without data is an empty folder, which scripts take for an empty data set.",
        sentence="hostPath must be set, for example hostPath: {path: /data}",
        breaches=_volumes,
        cel="has(self.hostPath)",
    ),
    Rule(
        places=("spec.inputs[].volume.hostPath.path", "spec.checkpoint.volume.hostPath.path"),
        why="A relative path would depend on where muster was started, and .. leads out of what was meant.",
        sentence="a host path begins with / and has no .. in it; write it in full",
        breaches=_host_paths,
        cel=_ABSOLUTE_CEL,
    ),
    Rule(
        places=("spec.network.interface",),
        why="A form that isn't understood would quietly leave the choice to the library.",
        sentence="allowed are Auto, names (eth0,eth1), exclusions (^docker0,lo) and an address range (10.0.0.0/16)",
        breaches=_interface,
        cel=f"self == 'Auto' || (self.lowerAscii() != 'auto' && self.matches('{_NAMES_CEL}')) || isCIDR(self)",
    ),
    Rule(
        places=("spec",),
        why="The rank store and the status are sized for it.",
        sentence=f"a job has at most {MAX_WORLD} ranks (nodes x procsPerNode)",
        breaches=_world,
        cel=f"type(self.procsPerNode) == string || self.nodes * int(self.procsPerNode) <= {MAX_WORLD}",
    ),
)
