"""Escape text for a comment in YAML. Pure."""


def escape_line(text: str) -> str:
    """Escape characters that are not printable, such as line ends."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
