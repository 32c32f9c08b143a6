"""Parse the options `--aws-region` and `--aws-account`."""

from __future__ import annotations

import re

from muster.api.role_arn import parse_account_id
from muster.api.spec.sagemaker.spec import REGION_PATTERN, ROLE_PATTERN
from muster.cli.errors import BadInput

_ACCOUNT = re.compile("[0-9]{12}")


def check_region(name: str | None) -> str | None:
    """Return the region if it is valid. Raises `BadInput`."""
    if name is not None and re.fullmatch(REGION_PATTERN, name) is None:
        raise BadInput(f"--aws-region {name}: a region such as us-west-2 is expected")
    return name


def choose_account(name: str | None, role: str | None) -> str | None:
    """Return the account `name`, or the role's account if `name` is None. Raises `BadInput` for an invalid account."""
    if name is not None and _ACCOUNT.fullmatch(name) is None:
        raise BadInput(f"--aws-account {name}: the account's 12 digits are expected")
    if name is not None or role is None or re.fullmatch(ROLE_PATTERN, role) is None:
        return name
    return parse_account_id(role)
