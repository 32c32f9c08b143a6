"""Format counts in sentences: "1 rank", "4 ranks", "1 of 4 ranks runs". Pure."""


def pluralize(count: int, noun: str) -> str:
    """Return the count with the noun: "1 rank", "0 ranks"; the noun's plural must end in s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def describe_share(count: int, of: int, noun: str, singular: str, plural: str) -> str:
    """Return "1 of 4 ranks runs" or "2 of 4 ranks run"; "the rank runs" or "no rank runs" for a total of 1."""
    if of != 1:
        return f"{count} of {of} {noun}s {singular if count == 1 else plural}"
    return f"{'the' if count else 'no'} {noun} {singular}"


def capitalize(sentence: str) -> str:
    """Return the sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]
