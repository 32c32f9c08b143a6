"""Parse an mpirun's command line into options and their values. Pure.

The numbers of values are from mpirun(1) of Open MPI 4.1, prterun(1) of 5, and `mpiexec -help` of MPICH 5. Options whose
number of values differs between implementations are omitted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.api.validation.rules.mpi.options import TWO_VALUE_OPTIONS

_NO_VALUE = (
    *("oversubscribe", "nooversubscribe", "use-hwthread-cpus", "allow-run-as-root", "enable-recovery"),
    *("bynode", "byslot", "pernode", "nolocal", "report-bindings", "display-map", "display-allocation"),
    *("q", "quiet", "v", "verbose", "tag-output", "timestamp-output", "merge-stderr-to-stdout"),
    *("genvall", "envall", "genvnone", "envnone", "print-all-exitcodes", "prepend-rank"),
)
_ONE_VALUE = (
    *("n", "np", "N", "npernode", "npersocket", "ppn", "perhost", "cpus-per-proc", "cpus-per-rank"),
    *("H", "host", "hosts", "f", "hostfile", "machinefile", "default-hostfile", "add-host", "add-hostfile"),
    *("map-by", "rank-by", "bind-to", "x", "genvlist", "envlist", "wdir", "wd", "path", "prefix"),
    *("tune", "am", "output", "output-filename", "display", "timeout", "iface"),
    *("launcher", "launcher-exec", "bootstrap", "bootstrap-exec", "rmk"),
    "c",  # the same as -np; Hydra has no option of this name
)
_VALUES = {
    **dict.fromkeys(_NO_VALUE, 0),
    **dict.fromkeys(_ONE_VALUE, 1),
    **dict.fromkeys(TWO_VALUE_OPTIONS, 2),
}


@dataclass(frozen=True)
class Option:
    """An option, without its dashes.

    `index` is the option's position, `value_index` that of its first value; they are equal for --name=value.
    `missing_values` is the number of values that the command line lacks.
    """

    name: str
    index: int
    value_index: int
    values: tuple[str, ...]
    missing_values: int = 0


def parse_options(words: Sequence[str]) -> Iterator[Option]:
    """Yield the options at the beginning of `words`, up to the program or the first unknown option."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        name, equals, value = words[index].removeprefix("-").removeprefix("-").partition("=")
        if name not in _VALUES:
            return
        count = 0 if equals else _VALUES[name]
        values = (value,) if equals else tuple(words[index + 1 : index + 1 + count])
        yield Option(name, index, index if equals else index + 1, values, count - len(values) if not equals else 0)
        index += 1 + count
