"""How often AWS lets an account ask, by operation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Quota:
    """`per_second` requests of an account in a region, and how many of them may wait for an answer at once.

    Where that is one, the next is sent a whole interval after the answer to the last: then they can't come closer
    together on their way, however long one of them is held up.
    """

    per_second: float
    at_once: int


QUOTAS: Mapping[str, Quota] = MappingProxyType(
    {
        "CreateTrainingJob": Quota(0.9, 3),
        "StopTrainingJob": Quota(0.9, 3),
        "ListTrainingJobs": Quota(2.0, 1),
        "DescribeTrainingJob": Quota(4.5, 4),
        "ListTags": Quota(1.8, 2),
        "DescribeLogStreams": Quota(22.5, 8),
        "FilterLogEvents": Quota(4.5, 4),
        "GetLogEvents": Quota(9.0, 8),
    }
)
"""Not an operation of these: as often as one likes.

SageMaker: the defaults in Service Quotas (service code `sagemaker`), none of them adjustable: "Rate of
CreateTrainingJob requests" 1/s (L-21A1652A), StopTrainingJob 1/s (L-B57580F5), ListTrainingJobs 2/s (L-DE587792),
DescribeTrainingJob 5/s (L-96E3A68C). None is published for tags: they are asked for as carefully. CloudWatch Logs: the
lowest of any region in "Amazon CloudWatch Logs endpoints and quotas" (AWS General Reference): GetLogEvents 10/s,
FilterLogEvents 5/s, DescribeLogStreams 25/s. Where several are under way at once, a tenth is left for those that are
held up on their way.
"""
