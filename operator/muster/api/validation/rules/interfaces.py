"""The forms of `spec.network.interface`."""

import ipaddress
import re

AUTO = "Auto"

NAME = r"[A-Za-z][A-Za-z0-9_.@-]{0,14}"
"""An interface's name: Linux keeps 15 characters. Some could begin with a digit, but that is an address cut short."""

NAMES = rf"^\^?{NAME}\*?(,{NAME}\*?)*$"
"""Names and prefixes (eth0,eth*) or, after one ^, prefixes that are excluded (^docker,lo), as NCCL takes them."""


def objection(text: str) -> str | None:
    """What speaks against it; None when it is Auto, a list of names or prefixes, of exclusions, or an address range."""
    if text == AUTO or _is_range(text) or (re.fullmatch(NAMES, text) and text.lower() != AUTO.lower()):
        return None
    if text.lower() == AUTO.lower():
        return f"write it {AUTO}"
    if "/" in text or _is_address(text):
        return _objection_to_range(text)
    if "=" in text:
        return "a name is exact as it stands, and eth* is every name that begins with eth: leave out the ="
    if "^" in text[1:]:
        return "one ^ at the beginning excludes all the names that follow; names and exclusions don't mix"
    return "it has none of the forms"


def _objection_to_range(text: str) -> str:
    if "," in text:
        return "an address range stands alone"
    if "/" in text:
        return "its address or its prefix length is wrong"
    return "the nodes' addresses differ: write the range that has all of them, with its prefix length"


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
