"""Where the parts of a JSON text are, found without recursion: a tenant chooses how deep an object is nested. Pure.

Go's decoder lets 10,000 levels pass, and Python's parsers, walks and copies recurse. So a text is cut into its parts
first, in time that grows with its length alone, and only what is shallow is parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate

from muster.api.document import JSON

MAX_LEVELS = 100
"""Of lists and maps within one part. No valid object comes near, and a tenth of Python's stack is enough for it."""

MAX_MEMBERS = 1000
"""Of a map that is cut into its parts: objects and their metadata have a dozen."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_PLAIN = rb'[^"{}\[\]]++'


def _nested(levels: int) -> bytes:
    """A map or list of at most so many levels. Possessive, so that nothing is ever tried twice."""
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
    """The text is no JSON, or it is cut off."""


class TooDeep(ValueError):
    """A part has more than `MAX_LEVELS` levels."""


class Part:
    """A value within a text. Nothing is copied, and its end isn't looked for, before it is needed."""

    __slots__ = ("_end", "_is_deep", "_start", "_text")

    def __init__(self, text: bytes, start: int) -> None:
        self._text = text
        self._start = start
        self._end = -1
        self._is_deep = False

    @property
    def end(self) -> int:
        """Where it ends in the text. Raises `Malformed`."""
        if self._end < 0:
            match = _SHALLOW.match(self._text, self._start)
            if match is not None:
                self._end = match.end()
            elif self._text[self._start : self._start + 1] in _OPENING:
                self._end, self._is_deep = _end_of_deep(self._text, self._start), True
            else:
                raise Malformed(f"no value is at byte {self._start}")
        return self._end

    @property
    def size(self) -> int:
        """In bytes. Raises `Malformed`."""
        return self.end - self._start

    @property
    def is_list(self) -> bool:
        """Whether it begins as a list does."""
        return self._text[self._start : self._start + 1] == b"["

    def has(self, word: bytes) -> bool:
        """Whether the text has the word in it; also after the part, where its end isn't known yet."""
        return self._text.find(word, self._start, self._end if self._end >= 0 else len(self._text)) >= 0

    def content(self) -> bytes:
        """The part as a text of its own. Raises `TooDeep` and `Malformed`."""
        end = self.end
        if self._is_deep:
            raise TooDeep(f"nested more than {MAX_LEVELS} levels deep")
        return self._text[self._start : end]

    def value(self) -> JSON:
        """What it says. Raises `TooDeep` and `Malformed`."""
        content = self.content()
        try:
            result: JSON = json.loads(content)
        except ValueError as problem:
            raise Malformed(str(problem)) from None
        return result

    def members(self) -> Iterator[tuple[str, Part]]:
        """The values of a map with their keys, one after the other. Raises `Malformed` for what is none."""
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
        """The values of a list, one after the other. Raises `Malformed` for what is none."""
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
        # Who goes on behind the list need not look for its end once more.
        self._end = at + 1

    def _expect(self, at: int, char: bytes) -> None:
        if self._text[at : at + 1] != char:
            raise Malformed(f"{char.decode()} is expected at byte {at}")


def value_in(text: bytes) -> Part:
    """The value that a text is."""
    return Part(text, _after_space(text, 0))


def _end_of_deep(text: bytes, start: int) -> int:
    # Chunk by chunk, each looked at by functions of C: a loop of Python's over a megabyte of brackets takes a second.
    at, level = start, 0
    while chunk := _CHUNK.match(text, at):
        brackets = _STRINGS.sub(b"", chunk[0]).translate(None, _NO_BRACKETS)
        levels = list(accumulate(map(_STEPS.__getitem__, brackets), initial=level))
        if 0 in levels[1:]:
            return _end_within(text, at, level)
        at, level = chunk.end(), levels[-1]
    raise Malformed("the text is cut off")


def _end_within(text: bytes, at: int, level: int) -> int:
    for bracket in _BRACKET.finditer(text, at):
        level += 1 if bracket[1] in _OPENING else -1
        if level == 0:
            return bracket.end()
    raise Malformed("the text is cut off")


def _after_space(text: bytes, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _name(quoted: bytes) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError as problem:
        raise Malformed(str(problem)) from None
