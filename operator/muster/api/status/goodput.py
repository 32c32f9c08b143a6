"""The types of `status.goodput`: how much of the job's time was productive, and the causes of the lost time."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import Model

MAX_SECONDS = 1e12
MAX_DEVICES = 100_000_000

START = "Start"
FAILURE = "Failure"
HANG = "Hang"
RECOMPUTATION = "Recomputation"
WAITING_FOR_NODE = "WaitingForNode"
SPARE = "Spare"

CAUSES = (START, FAILURE, HANG, RECOMPUTATION, WAITING_FOR_NODE, SPARE)
"""The causes of lost time."""

RANK_DEVICE = "rank"
"""The name of the devices of a job whose pods request no devices."""

_Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]


class LostTime(Model):
    """The time that the job lost by one cause."""

    cause: str = Field(description=f"{', '.join(CAUSES[:-1])} or {CAUSES[-1]}.", max_length=32)
    seconds: _Seconds = Field(description="The seconds that the job lost by this cause; 0 for Spare.")
    device_seconds: _Seconds = Field(
        description="The lost device-seconds: the seconds times the number of devices of the job."
    )


class Goodput(Model):
    """How much of the job's time was productive. The docs define each field: docs/goodput.md."""

    ratio: float | None = Field(
        default=None,
        description="productiveSeconds divided by totalSeconds; unset while totalSeconds is 0.",
        ge=0,
        le=1,
        allow_inf_nan=False,
    )
    productive_seconds: _Seconds = Field(
        default=0.0, description="The seconds of steps that no earlier attempt had completed."
    )
    total_seconds: _Seconds = Field(
        default=0.0,
        description="The seconds since the first node of the job was scheduled, without those in which the job was "
        "suspended. The time since the last step counts once the next step is complete or the attempt is over.",
    )
    productive_device_seconds: _Seconds = Field(default=0.0, description="productiveSeconds in device-seconds.")
    lost: Annotated[tuple[LostTime, ...], Field(max_length=8)] = Field(
        default=(),
        description="The time that was not productive, by cause. With productiveSeconds it adds up to totalSeconds.",
    )
    device: str = Field(
        default="",
        description="What a device is: a resource, such as nvidia.com/gpu, or rank if the pods request no devices.",
        max_length=64,
    )
    devices: int = Field(
        default=0, description="The number of devices on the job's scheduled nodes.", ge=0, le=MAX_DEVICES
    )
    spare_devices: int = Field(
        default=0, description="The number of devices on the job's scheduled spares.", ge=0, le=MAX_DEVICES
    )
    step: int | None = Field(
        default=None,
        description="The highest step that the script has reported with muster_worker.report, over all attempts.",
        ge=0,
    )
    recompute_until: int | None = Field(
        default=None,
        description="The highest step of the earlier attempts. Time in which the current attempt repeats steps up to "
        "this one counts as lost.",
        ge=0,
    )
    at: str | None = Field(
        default=None,
        description="The time up to which the seconds are counted (RFC 3339); unset while nothing is counted.",
        max_length=40,
    )
