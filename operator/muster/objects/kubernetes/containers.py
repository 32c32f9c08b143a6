"""What the kubelet says of a container, read leniently: what is absent or of another shape counts as not said. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from muster.api.document import JSON
from muster.api.json_fields import mapping, objects, string, whole
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.names import TRAINER

MAX_CONTAINERS = 64
"""Of a list that are looked at, `trainer` first: a tenant's pod may have thousands, each of which would be kept."""

MAX_TEXT_CHARS = 1024
"""Of an image, a reason or a message: what is longer is cut off."""

MAX_TERMINATION_MESSAGE_CHARS = 4096
"""Of what a container left in its termination log: the kubelet keeps no more."""


@dataclass(frozen=True)
class Waiting:
    """It has not begun. `reason` and `message` are the kubelet's, "" when it says nothing yet."""

    reason: str = ""
    message: str = ""


@dataclass(frozen=True)
class Running:
    """It has begun, at `started_at` (Unix seconds)."""

    started_at: float | None = None


@dataclass(frozen=True)
class Terminated:
    """It has ended. Times are Unix seconds, cut off to whole ones by the kubelet."""

    exit_code: int
    reason: str = ""
    message: str = ""
    signal: int | None = None
    started_at: float | None = None
    finished_at: float | None = None


ContainerState: TypeAlias = Waiting | Running | Terminated


@dataclass(frozen=True)
class Container:
    """A container of a pod: as it was asked for, and how it is. `last` is how it ended before it was begun again.

    `memory_limit` is the quantity as written, "" for none.
    """

    name: str
    image: str
    state: ContainerState
    last: Terminated | None = None
    memory_limit: str = ""
    is_sidecar: bool = False

    @property
    def chars(self) -> int:
        """Of the texts that may be long."""
        ends = (self.state, self.last)
        return len(self.image) + sum(len(end.message) for end in ends if isinstance(end, Waiting | Terminated))


def read_containers(specs: JSON, statuses: JSON) -> tuple[Container, ...]:
    """The containers of `spec`, with what `status` says of each."""
    entry = {string(status.get("name")): status for status in objects(statuses)}
    # The sort keeps the order of all others.
    result = sorted(objects(specs), key=lambda spec: spec.get("name") != TRAINER)[:MAX_CONTAINERS]
    return tuple(_container(spec, entry.get(string(spec.get("name")), {})) for spec in result)


def text(value: JSON, most: int = MAX_TEXT_CHARS) -> str:
    """A field that is a string, of bounded length; "" when it's absent."""
    return string(value)[:most]


def seconds(value: JSON) -> float | None:
    """A time of the API server as Unix seconds. The year 1970 is how Go writes that there is none."""
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
            exit_code=whole(ended.get("exitCode")) or 0,
            reason=text(ended.get("reason")),
            message=text(ended.get("message"), MAX_TERMINATION_MESSAGE_CHARS),
            signal=whole(ended.get("signal")) or None,
            started_at=seconds(ended.get("startedAt")),
            finished_at=seconds(ended.get("finishedAt")),
        )
    if "running" in state:
        return Running(seconds(mapping(state.get("running")).get("startedAt")))
    waiting = mapping(state.get("waiting"))
    return Waiting(text(waiting.get("reason")), text(waiting.get("message")))
