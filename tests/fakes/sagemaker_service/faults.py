"""Faults of requests and answers, which a test plans."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from fakes.sagemaker_service import refusal
from fakes.sagemaker_service.callers import OWN_ARN
from fakes.sagemaker_service.refusal import Refusal


class Fault(Enum):
    """BEFORE: the request was not executed. AFTER: the request was executed, and the answer is lost."""

    FAIL = "500"
    FAIL_AFTER = "500, done"
    DROP = "connection closed"
    DROP_AFTER = "connection closed, done"
    SILENCE = "no answer"
    SILENCE_AFTER = "no answer, done"
    THROTTLE = "throttled"
    EXPIRED = "expired credentials"
    UNKNOWN_CALLER = "unknown credentials"
    DENY = "not allowed"

    @property
    def is_done(self) -> bool:
        return self.name.endswith("_AFTER")

    @property
    def refusal(self) -> Refusal | None:
        """The error answer; None: no answer."""
        words = {
            Fault.FAIL: refusal.make_server_error(),
            Fault.FAIL_AFTER: refusal.make_server_error(),
            Fault.THROTTLE: refusal.make_throttling_refusal(),
            Fault.EXPIRED: refusal.make_expired_token_refusal(),
            Fault.UNKNOWN_CALLER: refusal.make_unknown_caller_refusal(),
            Fault.DENY: refusal.make_access_denied_refusal(OWN_ARN, "sagemaker:Any", "*"),
        }
        return words.get(self)


@dataclass
class Faults:
    """`plan`: the faults of the next calls of an operation. `chance`: the faults of any call."""

    plan: list[tuple[str, Fault]] = field(default_factory=list)
    chance: Callable[[str], Fault | None] = lambda _operation: None

    def add(self, operation: str, fault: Fault, times: int = 1) -> None:
        self.plan += [(operation, fault)] * times

    def take_next(self, operation: str) -> Fault | None:
        for index, (wanted, fault) in enumerate(self.plan):
            if wanted == operation:
                del self.plan[index]
                return fault
        return self.chance(operation)


def share(part: float, seed: int, *kinds: Fault) -> Callable[[str], Fault | None]:
    """Let this share of all answers fail, the same ones in each run."""
    draw = random.Random(seed)  # noqa: S311
    return lambda _operation: draw.choice(kinds) if draw.random() < part else None
