"""Find the parts of a JSON text without recursion. Pure.

Users choose how deeply their objects are nested. The API server accepts 10,000 levels, but Python's parsers and copies
are recursive. So this module first splits a text into parts, in linear time, and parses only parts with few levels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate

from muster.api.document import JSON

MAX_LEVELS = 100
"""The maximum number of levels in a part: more than in any valid object, and a tenth of Python's stack."""

MAX_MEMBERS = 1000
"""The maximum number of fields of a map that is split. Objects and their metadata have about a dozen."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_PLAIN = rb'[^"{}\[\]]++'


def _build_nested_pattern(levels: int) -> bytes:
    """Return a pattern for a map or list of at most `levels` levels. It never backtracks."""
    value = b""
    for _ in range(levels):
        value = rb"[{\[](?:" + b"|".join(filter(None, (_PLAIN, _STRING, value))) + rb")*+[}\]]"
    return value


_SPACE = re.compile(rb"[ \t\r\n]*+")
_KEY = re.compile(rb"[ \t\r\n]*+(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_SHALLOW = re.compile(rb'[^"{}\[\],: \t\r\n]++|' + _STRING + b"|" + _build_nested_pattern(MAX_LEVELS), re.DOTALL)
_STRINGS = re.compile(_STRING, re.DOTALL)
_CHUNK_PATTERN = re.compile(rb'(?:[^"]{1,1024}+|' + _STRING + rb"){1,64}+", re.DOTALL)
_BRACKET = re.compile(rb"(?:" + _PLAIN + b"|" + _STRING + rb")*+([{}\[\]])", re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
"""Half of a character beyond U+FFFF. Alone it is not valid Unicode. Python accepts it, but the API server does not."""

_DECODER = json.JSONDecoder()
_OPENING_BRACKETS = (b"{", b"[")
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_LEVEL_CHANGES = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}


class MalformedJson(ValueError):
    """The text is not JSON, or it is truncated."""


class NestingTooDeep(ValueError):
    """A part has more than `MAX_LEVELS` levels."""


class Part:
    """A value within a JSON text. It finds its end only when needed."""

    __slots__ = ("_end", "_is_deep", "_start", "_text")

    def __init__(self, text: bytes, start: int) -> None:
        self._text = text
        self._start = start
        self._end = -1
        self._is_deep = False

    @property
    def end(self) -> int:
        """The position of the value's end in the text. Raises `MalformedJson`."""
        if self._end < 0:
            match = _SHALLOW.match(self._text, self._start)
            if match is not None:
                self._end = match.end()
            elif self._text[self._start : self._start + 1] in _OPENING_BRACKETS:
                self._end, self._is_deep = _find_end_of_deep_value(self._text, self._start), True
            else:
                raise MalformedJson(f"a value is expected at byte {self._start}")
        return self._end

    @property
    def size(self) -> int:
        """The value's size in bytes. Raises `MalformedJson`."""
        return self.end - self._start

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return self._text[self._start : self._start + 1] == b"["

    def contains(self, text: bytes) -> bool:
        """Whether the value contains the text. If the value's end isn't known yet, also search the text after it."""
        return self._text.find(text, self._start, self._end if self._end >= 0 else len(self._text)) >= 0

    def get_text(self) -> bytes:
        """Return the value's text. Raises `NestingTooDeep` and `MalformedJson`."""
        end = self.end
        if self._is_deep:
            raise NestingTooDeep(f"nested more than {MAX_LEVELS} levels deep")
        return self._text[self._start : end]

    def parse(self) -> JSON:
        """Parse the value. Raises `NestingTooDeep` and `MalformedJson`."""
        content = self.get_text()
        try:
            result: JSON = json.loads(content)
            if _SURROGATE.search(content) is not None:
                json.dumps(result, ensure_ascii=False).encode()
        except ValueError as problem:
            raise MalformedJson(str(problem)) from None
        return result

    def parse_whole(self, max_bytes: int) -> JSON:
        """Parse the value with all levels; None if it is too long, or if Python's parser can't parse it.

        If its end isn't known yet, the text after it counts as well.
        """
        end = self._end if self._end >= 0 else len(self._text)
        text = self._text[self._start : end] if end - self._start <= max_bytes else b""
        # Positions in bytes and in characters are equal only in ASCII.
        if not text.isascii() or _SURROGATE.search(text) is not None:
            return None
        try:
            result, length = _DECODER.raw_decode(text.decode("ascii"))
        except (ValueError, RecursionError):
            return None
        self._end = self._start + length
        parsed: JSON = result
        return parsed

    def iterate_members(self) -> Iterator[tuple[str, Part]]:
        """Yield the keys and values of a map. Raises `MalformedJson` for other values."""
        text = self._text
        self._expect_char(self._start, b"{")
        at = _skip_space(text, self._start + 1)
        if text[at : at + 1] == b"}":
            return
        for _ in range(MAX_MEMBERS):
            key = _KEY.match(text, at)
            if key is None:
                raise MalformedJson(f"a key is expected at byte {at}")
            part = Part(text, key.end())
            yield _parse_name(key[1]), part
            at = _skip_space(text, part.end)
            if text[at : at + 1] == b"}":
                return
            self._expect_char(at, b",")
            at += 1
        raise MalformedJson(f"a map has more than {MAX_MEMBERS} fields")

    def iterate_elements(self) -> Iterator[Part]:
        """Yield the values of a list. Raises `MalformedJson` for other values."""
        text = self._text
        self._expect_char(self._start, b"[")
        at = _skip_space(text, self._start + 1)
        while text[at : at + 1] != b"]":
            part = Part(text, _skip_space(text, at))
            at = _skip_space(text, part.end)
            yield part
            if text[at : at + 1] != b"]":
                self._expect_char(at, b",")
                at += 1
        # Now the end of the list is known.
        self._end = at + 1

    def _expect_char(self, at: int, char: bytes) -> None:
        if self._text[at : at + 1] != char:
            raise MalformedJson(f"{char.decode()} is expected at byte {at}")


def find_value(text: bytes) -> Part:
    """Return the value in a text."""
    return Part(text, _skip_space(text, 0))


def _find_end_of_deep_value(text: bytes, start: int) -> int:
    # Process chunks with C functions: a Python loop over a megabyte of brackets takes a second.
    at, level = start, 0
    while chunk := _CHUNK_PATTERN.match(text, at):
        brackets = _STRINGS.sub(b"", chunk[0]).translate(None, _NO_BRACKETS)
        levels = list(accumulate(map(_LEVEL_CHANGES.__getitem__, brackets), initial=level))
        if 0 in levels[1:]:
            return _find_end_in_chunk(text, at, level)
        at, level = chunk.end(), levels[-1]
    raise MalformedJson("the text is truncated")


def _find_end_in_chunk(text: bytes, at: int, level: int) -> int:
    for bracket in _BRACKET.finditer(text, at):
        level += 1 if bracket[1] in _OPENING_BRACKETS else -1
        if level == 0:
            return bracket.end()
    raise MalformedJson("the text is truncated")


def _skip_space(text: bytes, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _parse_name(quoted: bytes) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError as problem:
        raise MalformedJson(str(problem)) from None
