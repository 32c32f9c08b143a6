"""Parse the kubelet's status of a container. Missing or unexpected fields count as absent. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from muster.api.document import JSON
from muster.api.json_fields import integer, mapping, objects, string
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.names import TRAINER

MAX_CONTAINERS = 64
"""The limit for a list of containers, `trainer` first, because a tenant's pod may have thousands."""

MAX_TEXT_CHARS = 1024
"""The limit for an image, a reason or a message; longer texts are cut."""

MAX_TERMINATION_MESSAGE_CHARS = 4096
"""The limit for a termination message, which is also the kubelet's."""


@dataclass(frozen=True)
class Waiting:
    """The container has not started. `reason` and `message` are the kubelet's, "" if not set."""

    reason: str = ""
    message: str = ""


@dataclass(frozen=True)
class Running:
    """The container runs since `started_at` (Unix seconds)."""

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
    """A container of a pod: its spec and its state. `last` is its end before the latest restart.

    `memory_limit` is the quantity in the spec, "" for none.
    """

    name: str
    image: str
    state: ContainerState
    last: Terminated | None = None
    memory_limit: str = ""
    is_sidecar: bool = False

    @property
    def chars(self) -> int:
        """The length of texts that may be long."""
        ends = (self.state, self.last)
        return len(self.image) + sum(len(end.message) for end in ends if isinstance(end, Waiting | Terminated))


def read_containers(specs: JSON, statuses: JSON) -> tuple[Container, ...]:
    """Parse the containers of `spec` with their states in `status`."""
    statuses_by_name = {string(status.get("name")): status for status in objects(statuses)}
    # The sort is stable, so the other containers keep their order.
    result = sorted(objects(specs), key=lambda spec: spec.get("name") != TRAINER)[:MAX_CONTAINERS]
    return tuple(_container(spec, statuses_by_name.get(string(spec.get("name")), {})) for spec in result)


def text(value: JSON, most: int = MAX_TEXT_CHARS) -> str:
    """A string field of bounded length; "" if it is absent."""
    return string(value)[:most]


def seconds(value: JSON) -> float | None:
    """An API server's time in Unix seconds; None for Go's zero time."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return at if at > 0 else None


def _container(spec: Object, status: Object) -> Container:
    state = _state(mapping(status.get("state")))
    last = _state(mapping(status.get("lastState")))
    limit = mapping(mapping(spec.get("resources")).get("limits")).get("memory")
    return Container(
        name=string(spec.get("name")),
        image=text(spec.get("image")),
        state=state,
        last=last if isinstance(last, Terminated) else None,
        memory_limit=text(str(limit)) if isinstance(limit, str | int) else "",
        is_sidecar=spec.get("restartPolicy") == "Always",
    )


def _state(state: Object) -> ContainerState:
    ended = mapping(state.get("terminated"))
    if ended:
        return Terminated(
            exit_code=integer(ended.get("exitCode")) or 0,
            reason=text(ended.get("reason")),
            message=text(ended.get("message"), MAX_TERMINATION_MESSAGE_CHARS),
            signal=integer(ended.get("signal")) or None,
            started_at=seconds(ended.get("startedAt")),
            finished_at=seconds(ended.get("finishedAt")),
        )
    if "running" in state:
        return Running(seconds(mapping(state.get("running")).get("startedAt")))
    waiting = mapping(state.get("waiting"))
    return Waiting(text(waiting.get("reason")), text(waiting.get("message")))
