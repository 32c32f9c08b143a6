"""The goodput of a job as lines of the board and of a run's summary. Pure."""

from __future__ import annotations

from muster.api.status.goodput import FAILURE, HANG, RANK_DEVICE, RECOMPUTATION, SPARE, START, WAITING_FOR_NODE
from muster.api.status.status import Status
from muster.objects.kubernetes.devices import AMD_GPU, GPU, NEURON, NEURON_CORE

_CAUSES = {
    START: "start",
    FAILURE: "failures",
    HANG: "hangs",
    RECOMPUTATION: "repeated steps",
    WAITING_FOR_NODE: "waiting for a node",
    SPARE: "spares",
}
_DEVICES = {GPU: "GPU", AMD_GPU: "GPU", NEURON_CORE: "Neuron-core", NEURON: "Neuron-chip", RANK_DEVICE: "rank"}


def format_goodput(status: Status) -> tuple[str, ...]:
    """Format the productive share of the time and the causes of the lost time, largest loss first.

    The result is empty while the share is unknown.
    """
    goodput = status.goodput
    if goodput is None or goodput.ratio is None:
        return ()
    line = f"goodput {100 * goodput.ratio:.1f} % of {_format_seconds(goodput.total_seconds)} s"
    losses = sorted(goodput.lost, key=lambda entry: (-entry.device_seconds, entry.cause))
    parts = [
        f"{_CAUSES[entry.cause]} {_format_seconds(entry.device_seconds)}" for entry in losses if entry.cause in _CAUSES
    ]
    if not parts:
        return (line,)
    return (f"{line}; lost {_DEVICES.get(goodput.device, 'device')}-seconds: {', '.join(parts)}",)


def describe_cause(cause: str) -> str:
    """Return the name of a cause of lost time for users; the cause itself if a later version has written it."""
    return _CAUSES.get(cause, cause)


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:,.0f}"  # noqa: PLR2004 - tenths matter in short runs only
