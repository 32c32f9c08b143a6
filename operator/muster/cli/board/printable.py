"""Remove control characters from text for a terminal. Pure."""


def replace_unprintable(text: str) -> str:
    """Return the text with a space for each control character and each mark that changes the direction of the text."""
    return "".join(character if character.isprintable() else " " for character in text)
