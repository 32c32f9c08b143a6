"""Put numbers into sentences: "1 rank", "4 ranks", "1 of 4 ranks runs". Pure."""


def amount(count: int, noun: str) -> str:
    """Return a number with its noun, whose plural takes an s: "1 rank", "0 ranks"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def share(count: int, of: int, noun: str, one: str, many: str) -> str:
    """Return "1 of 4 ranks runs": a share of a total, with the verb that `count` takes; of 1, "the rank runs"."""
    if of != 1:
        return f"{count} of {of} {noun}s {one if count == 1 else many}"
    return f"{'the' if count else 'no'} {noun} {one}"


def capital(sentence: str) -> str:
    """Return the sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]
