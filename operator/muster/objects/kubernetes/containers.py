"""Parse the kubelet's status of a container. Missing or unexpected fields count as absent. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from muster.api.document import JSON
from muster.api.json_fields import read_integer, read_mapping, read_mappings, read_string
from muster.core.devices import Devices
from muster.objects.kubernetes.devices import read_devices
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.names import TRAINER_CONTAINER

MAX_CONTAINERS = 64
"""The maximum number of containers to parse, because a user's pod may have thousands."""

MAX_TEXT_CHARS = 1024
"""The maximum length of an image, a reason or a message. Longer texts are truncated."""

MAX_TERMINATION_MESSAGE_CHARS = 4096
"""The maximum length of a termination message, as in the kubelet."""


@dataclass(frozen=True)
class Waiting:
    """The container has not started. `reason` and `message` are the kubelet's, or ""."""

    reason: str = ""
    message: str = ""


@dataclass(frozen=True)
class Running:
    """The container has been running since `started_at` (Unix seconds)."""

    started_at: float | None = None


@dataclass(frozen=True)
class Terminated:
    """The container has ended. Times are Unix seconds, which the kubelet truncates to whole seconds."""

    exit_code: int
    reason: str = ""
    message: str = ""
    signal: int | None = None
    started_at: float | None = None
    finished_at: float | None = None


ContainerState: TypeAlias = Waiting | Running | Terminated


@dataclass(frozen=True)
class Container:
    """A container of a pod: its spec and its state. `last_termination` is how its previous run ended.

    `memory_limit` is the quantity in the spec, or "". `devices` are the accelerators in its limits.
    """

    name: str
    image: str
    state: ContainerState
    last_termination: Terminated | None = None
    memory_limit: str = ""
    devices: Devices | None = None
    is_sidecar: bool = False

    @property
    def text_length(self) -> int:
        """The total length of the image's name and of the states' messages."""
        states = (self.state, self.last_termination)
        return len(self.image) + sum(len(state.message) for state in states if isinstance(state, Waiting | Terminated))


def read_containers(specs: JSON, statuses: JSON) -> tuple[Container, ...]:
    """Parse a pod's containers. `specs` are their specs, `statuses` their statuses."""
    statuses_by_name = {read_string(status.get("name")): status for status in read_mappings(statuses)}
    # `trainer` comes first. The sort is stable, so the other containers keep their order.
    result = sorted(read_mappings(specs), key=lambda spec: spec.get("name") != TRAINER_CONTAINER)[:MAX_CONTAINERS]
    return tuple(_read_container(spec, statuses_by_name.get(read_string(spec.get("name")), {})) for spec in result)


def read_truncated_text(value: JSON, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return the start of a string; "" for other values."""
    return read_string(value)[:max_chars]


def parse_optional_timestamp(value: JSON) -> float | None:
    """Convert a timestamp of the API to Unix seconds; None for Go's zero time and for other values."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return at if at > 0 else None


def _read_container(spec: Object, status: Object) -> Container:
    state = _read_state(read_mapping(status.get("state")))
    last = _read_state(read_mapping(status.get("lastState")))
    limits = read_mapping(read_mapping(spec.get("resources")).get("limits"))
    limit = limits.get("memory")
    return Container(
        name=read_string(spec.get("name")),
        image=read_truncated_text(spec.get("image")),
        state=state,
        last_termination=last if isinstance(last, Terminated) else None,
        memory_limit=read_truncated_text(str(limit)) if isinstance(limit, str | int) else "",
        devices=read_devices(limits),
        is_sidecar=spec.get("restartPolicy") == "Always",
    )


def _read_state(state: Object) -> ContainerState:
    ended = read_mapping(state.get("terminated"))
    if ended:
        return Terminated(
            exit_code=read_integer(ended.get("exitCode")) or 0,
            reason=read_truncated_text(ended.get("reason")),
            message=read_truncated_text(ended.get("message"), MAX_TERMINATION_MESSAGE_CHARS),
            signal=read_integer(ended.get("signal")) or None,
            started_at=parse_optional_timestamp(ended.get("startedAt")),
            finished_at=parse_optional_timestamp(ended.get("finishedAt")),
        )
    if "running" in state:
        return Running(parse_optional_timestamp(read_mapping(state.get("running")).get("startedAt")))
    waiting = read_mapping(state.get("waiting"))
    return Waiting(read_truncated_text(waiting.get("reason")), read_truncated_text(waiting.get("message")))
