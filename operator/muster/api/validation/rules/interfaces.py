"""Validate `spec.network.interface`."""

import ipaddress
import re

AUTO = "Auto"

NAME = r"[A-Za-z][A-Za-z0-9_.@-]{0,14}"
"""An interface's name, which has at most 15 characters on Linux. A leading digit is usually part of an address."""

NAMES = rf"^\^?{NAME}\*?(,{NAME}\*?)*$"
"""Names and prefixes (eth0,eth*) or, after one ^, excluded prefixes (^docker,lo), as in NCCL_SOCKET_IFNAME."""


def find_interface_problem(text: str) -> str | None:
    """Return the reason why the text is invalid; None if it is valid.

    Valid are Auto, a list of names or prefixes, a list of exclusions, and an address range.
    """
    if text == AUTO or _is_range(text) or (re.fullmatch(NAMES, text) and text.lower() != AUTO.lower()):
        return None
    if text.lower() == AUTO.lower():
        return f"write it {AUTO}"
    if "/" in text or _is_address(text):
        return _find_range_problem(text)
    if "=" in text:
        return "a name matches exactly, and eth* matches every name that begins with eth: remove the ="
    if "^" in text[1:]:
        return "one ^ at the beginning excludes all names after it; names and exclusions can't be combined"
    return "it has none of these forms"


def _find_range_problem(text: str) -> str:
    if "," in text:
        return "an address range stands alone"
    if "/" in text:
        return "its address or its prefix length is wrong"
    return "the nodes' addresses differ: write the range that contains all of them, with its prefix length"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_range(text: str) -> bool:
    if "/" not in text or "%" in text or not text.rpartition("/")[2].isascii() or not text.rpartition("/")[2].isdigit():
        return False
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
