"""Format counts in sentences: "1 rank", "4 ranks", "1 of 4 ranks runs". Pure."""


def pluralize(count: int, noun: str) -> str:
    """Return the count with its noun; the plural ends in s: "1 rank", "0 ranks"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def describe_share(count: int, of: int, noun: str, singular: str, plural: str) -> str:
    """Return "1 of 4 ranks runs": a share of a total, with the verb that `count` takes; of 1, "the rank runs"."""
    if of != 1:
        return f"{count} of {of} {noun}s {singular if count == 1 else plural}"
    return f"{'the' if count else 'no'} {noun} {singular}"


def capitalize(sentence: str) -> str:
    """Return the sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]
