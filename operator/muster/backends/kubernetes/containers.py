"""What the kubelet says of a container, read leniently: what is absent or of another shape counts as not said. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from muster.api.document import JSON
from muster.kube.answers import mapping, objects, string
from muster.kube.kinds import Object


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


def read_containers(specs: JSON, statuses: JSON) -> tuple[Container, ...]:
    """The containers of `spec`, with what `status` says of each."""
    known = {string(status.get("name")): status for status in objects(statuses)}
    return tuple(_container(spec, known.get(string(spec.get("name")), {})) for spec in objects(specs))


def seconds(value: JSON) -> float | None:
    """A time of the API server as Unix seconds. The year 1970 is how Go writes that there is none."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return at if at > 0 else None


def whole(value: JSON) -> int | None:
    """A whole number; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _container(spec: Object, status: Object) -> Container:
    state = _state(mapping(status.get("state")))
    last = _state(mapping(status.get("lastState")))
    limit = mapping(mapping(spec.get("resources")).get("limits")).get("memory")
    return Container(
        name=string(spec.get("name")),
        image=string(spec.get("image")),
        state=state,
        last=last if isinstance(last, Terminated) else None,
        memory_limit=str(limit) if isinstance(limit, str | int) else "",
        is_sidecar=spec.get("restartPolicy") == "Always",
    )


def _state(state: Object) -> ContainerState:
    ended = mapping(state.get("terminated"))
    if ended:
        return Terminated(
            exit_code=whole(ended.get("exitCode")) or 0,
            reason=string(ended.get("reason")),
            message=string(ended.get("message")),
            signal=whole(ended.get("signal")) or None,
            started_at=seconds(ended.get("startedAt")),
            finished_at=seconds(ended.get("finishedAt")),
        )
    if "running" in state:
        return Running(seconds(mapping(state.get("running")).get("startedAt")))
    waiting = mapping(state.get("waiting"))
    return Waiting(string(waiting.get("reason")), string(waiting.get("message")))
