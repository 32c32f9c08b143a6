"""Format counts in sentences: "1 rank", "4 ranks", "1 of 4 ranks runs". Pure."""


def pluralize(count: int, noun: str) -> str:
    """Return the count with the noun: "1 rank", "0 ranks"; the noun's plural must end in s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def describe_share(count: int, total: int, noun: str, singular_verb: str, plural_verb: str) -> str:
    """Return "1 of 4 ranks runs" or "2 of 4 ranks run". For a total of 1: "the rank runs" or "no rank runs"."""
    if total != 1:
        return f"{count} of {total} {noun}s {singular_verb if count == 1 else plural_verb}"
    return f"{'the' if count else 'no'} {noun} {singular_verb}"


def capitalize(sentence: str) -> str:
    """Return the sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]
