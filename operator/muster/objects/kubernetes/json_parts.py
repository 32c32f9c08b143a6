"""Find the parts of a JSON text without recursion: users choose how deeply an object is nested. Pure.

Go's decoder accepts 10,000 levels, and Python's parsers, traversals and copies are recursive. So this module splits a
text into parts first, in linear time, and parses only shallow ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate

from muster.api.document import JSON

MAX_LEVELS = 100
"""The most levels of lists and maps within one part: more than any valid object has, a tenth of Python's stack."""

MAX_MEMBERS = 1000
"""The most members of a map that is split: objects and their metadata have a dozen."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_PLAIN = rb'[^"{}\[\]]++'


def _nested(levels: int) -> bytes:
    """A map or list of at most `levels` levels. Possessive, so that nothing is tried twice."""
    value = b""
    for _ in range(levels):
        value = rb"[{\[](?:" + b"|".join(filter(None, (_PLAIN, _STRING, value))) + rb")*+[}\]]"
    return value


_SPACE = re.compile(rb"[ \t\r\n]*+")
_KEY = re.compile(rb"[ \t\r\n]*+(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_SHALLOW = re.compile(rb'[^"{}\[\],: \t\r\n]++|' + _STRING + b"|" + _nested(MAX_LEVELS), re.DOTALL)
_STRINGS = re.compile(_STRING, re.DOTALL)
_CHUNK = re.compile(rb'(?:[^"]{1,1024}+|' + _STRING + rb"){1,64}+", re.DOTALL)
_BRACKET = re.compile(rb"(?:" + _PLAIN + b"|" + _STRING + rb")*+([{}\[\]])", re.DOTALL)
_OPENING = (b"{", b"[")
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_STEPS = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}


class Malformed(ValueError):
    """The text is not JSON, or is truncated."""


class TooDeep(ValueError):
    """A part has more than `MAX_LEVELS` levels."""


class Part:
    """A value within a text. It copies nothing, and finds its end only on demand."""

    __slots__ = ("_end", "_is_deep", "_start", "_text")

    def __init__(self, text: bytes, start: int) -> None:
        self._text = text
        self._start = start
        self._end = -1
        self._is_deep = False

    @property
    def end(self) -> int:
        """The position of its end in the text. Raises `Malformed`."""
        if self._end < 0:
            match = _SHALLOW.match(self._text, self._start)
            if match is not None:
                self._end = match.end()
            elif self._text[self._start : self._start + 1] in _OPENING:
                self._end, self._is_deep = _end_of_deep(self._text, self._start), True
            else:
                raise Malformed(f"a value is expected at byte {self._start}")
        return self._end

    @property
    def size(self) -> int:
        """Its size in bytes. Raises `Malformed`."""
        return self.end - self._start

    @property
    def is_list(self) -> bool:
        """Whether it begins like a list."""
        return self._text[self._start : self._start + 1] == b"["

    def has(self, word: bytes) -> bool:
        """Whether the text contains the word; may also find it after the part if its end isn't known yet."""
        return self._text.find(word, self._start, self._end if self._end >= 0 else len(self._text)) >= 0

    def content(self) -> bytes:
        """The part's text. Raises `TooDeep` and `Malformed`."""
        end = self.end
        if self._is_deep:
            raise TooDeep(f"nested more than {MAX_LEVELS} levels deep")
        return self._text[self._start : end]

    def value(self) -> JSON:
        """The parsed value. Raises `TooDeep` and `Malformed`."""
        content = self.content()
        try:
            result: JSON = json.loads(content)
        except ValueError as problem:
            raise Malformed(str(problem)) from None
        return result

    def members(self) -> Iterator[tuple[str, Part]]:
        """Yield the keys and values of a map. Raises `Malformed` for other values."""
        text = self._text
        self._expect(self._start, b"{")
        at = _after_space(text, self._start + 1)
        if text[at : at + 1] == b"}":
            return
        for _ in range(MAX_MEMBERS):
            key = _KEY.match(text, at)
            if key is None:
                raise Malformed(f"a key is expected at byte {at}")
            part = Part(text, key.end())
            yield _name(key[1]), part
            at = _after_space(text, part.end)
            if text[at : at + 1] == b"}":
                return
            self._expect(at, b",")
            at += 1
        raise Malformed(f"a map has more than {MAX_MEMBERS} fields")

    def elements(self) -> Iterator[Part]:
        """Yield the values of a list. Raises `Malformed` for other values."""
        text = self._text
        self._expect(self._start, b"[")
        at = _after_space(text, self._start + 1)
        while text[at : at + 1] != b"]":
            part = Part(text, _after_space(text, at))
            at = _after_space(text, part.end)
            yield part
            if text[at : at + 1] != b"]":
                self._expect(at, b",")
                at += 1
        # The list's end is now known: callers need not search for it.
        self._end = at + 1

    def _expect(self, at: int, char: bytes) -> None:
        if self._text[at : at + 1] != char:
            raise Malformed(f"{char.decode()} is expected at byte {at}")


def value_in(text: bytes) -> Part:
    """The value in a text."""
    return Part(text, _after_space(text, 0))


def _end_of_deep(text: bytes, start: int) -> int:
    # Use C functions on chunks: a Python loop over a megabyte of brackets takes a second.
    at, level = start, 0
    while chunk := _CHUNK.match(text, at):
        brackets = _STRINGS.sub(b"", chunk[0]).translate(None, _NO_BRACKETS)
        levels = list(accumulate(map(_STEPS.__getitem__, brackets), initial=level))
        if 0 in levels[1:]:
            return _end_within(text, at, level)
        at, level = chunk.end(), levels[-1]
    raise Malformed("the text is truncated")


def _end_within(text: bytes, at: int, level: int) -> int:
    for bracket in _BRACKET.finditer(text, at):
        level += 1 if bracket[1] in _OPENING else -1
        if level == 0:
            return bracket.end()
    raise Malformed("the text is truncated")


def _after_space(text: bytes, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _name(quoted: bytes) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError as problem:
        raise Malformed(str(problem)) from None
