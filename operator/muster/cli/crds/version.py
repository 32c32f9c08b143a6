"""Which version of muster a CustomResourceDefinition on a cluster is of. Pure."""

from __future__ import annotations

import re

from muster.api.json_fields import read_mapping, read_string
from muster.api.names import GROUP
from muster.objects.kubernetes.kinds import Object

VERSION_ANNOTATION = f"{GROUP}/version"
"""`muster apply-crds` writes its version in this annotation. A definition that another client applied has none."""

_NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def read_crd_version(crd: Object) -> str:
    """Return the version of muster that applied the definition; "" if it is unknown."""
    return read_string(read_mapping(read_mapping(crd.get("metadata")).get("annotations")).get(VERSION_ANNOTATION))


def is_newer(version: str, other: str) -> bool:
    """Whether a version is later than another, by its three numbers. An unreadable version is not newer."""
    numbers = _NUMBERS.match(version), _NUMBERS.match(other)
    first, second = (tuple(map(int, match.groups())) if match else () for match in numbers)
    return bool(first) and first > second
