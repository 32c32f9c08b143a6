"""Numbers in sentences: "1 rank", "4 ranks", "1 of 4 ranks runs". Pure."""


def amount(count: int, noun: str) -> str:
    """A number and what is counted, whose plural takes an s: "1 rank", "0 ranks"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def share(count: int, of: int, noun: str, one: str, many: str) -> str:
    """So many of all, with the verb that `count` takes: "1 of 4 ranks runs"; of 1, "the rank runs"."""
    if of != 1:
        return f"{count} of {of} {noun}s {one if count == 1 else many}"
    return f"{'the' if count else 'no'} {noun} {one}"


def capital(sentence: str) -> str:
    """The same with a capital letter at its beginning; the rest stays as it is."""
    return sentence[:1].upper() + sentence[1:]
