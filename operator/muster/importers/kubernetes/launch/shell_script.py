"""Split a shell script into simple commands, if it consists of nothing else. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

_SHELLS = ("sh", "ash", "bash", "dash", "ksh", "zsh")
_RESERVED_WORDS = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "{", "}", "function"}
)
_OPERATORS = "|<>()"
_FILE_IN_SCRIPT = re.compile(r"(^|[;&|(\n])\s*((exec|source|[.]|\S*sh)\s+)?[^\s;&|]+[.]sh\b")


class NotSimple(Exception):
    """The script has more than simple commands, such as a loop or a pipe."""


@dataclass(frozen=True)
class Word:
    """A word without its quotes. `expands` is whether the shell would replace a part of it: $X, *, ~."""

    text: str
    expands: bool


@dataclass(frozen=True)
class ShellLine:
    """A command that runs a shell with a script: `index` is the script's position in the words."""

    script: str
    index: int


def find_script(words: Sequence[str]) -> ShellLine | None:
    """Return the script of `sh -c SCRIPT`; None for other commands, and if the script has arguments."""
    if not words or posixpath.basename(words[0]) not in _SHELLS:
        return None
    for index, word in enumerate(words[1:], 1):
        if not word.startswith("-"):
            return None
        is_option = not word.startswith("--") and word.endswith("c")
        if is_option and index + 1 == len(words) - 1:
            return ShellLine(words[index + 1], index + 1)
    return None


def runs_file(words: Sequence[str]) -> bool:
    """Whether a command runs a script file: run.sh, bash run.sh, or sh -c with such a command."""
    line = find_script(words)
    if line is not None:
        return _FILE_IN_SCRIPT.search(line.script) is not None
    is_shell = bool(words) and posixpath.basename(words[0]) in _SHELLS
    files = [word for word in words[1:] if not word.startswith("-")] if is_shell else words
    return bool(files) and files[0].endswith(".sh")


def split_script(script: str) -> list[tuple[Word, ...]]:
    """Return the simple commands of a script, without empty ones. Raises `NotSimple`."""
    commands: list[tuple[Word, ...]] = []
    for command in _Lexer(script).read():
        if command and command[0].text in _RESERVED_WORDS:
            raise NotSimple
        if command:
            commands.append(tuple(command))
    return commands


class _Lexer:
    """Reads words and the ends of commands."""

    def __init__(self, script: str) -> None:
        self._text = script.replace("\\\n", "")
        self._position = 0
        self._parts: list[str] = []
        self._is_in_word = False
        self._expands = False

    def read(self) -> list[list[Word]]:
        commands: list[list[Word]] = [[]]
        while self._position < len(self._text):
            char = self._text[self._position]
            if char in " \t\n;&" or (char == "#" and not self._is_in_word):
                self._end_word(commands[-1])
                if self._skip_separator(char):
                    commands.append([])
            elif char in _OPERATORS:
                raise NotSimple
            else:
                self._read_part(char)
        self._end_word(commands[-1])
        return commands

    def _skip_separator(self, char: str) -> bool:
        """Skip a separator or comment; return whether a command ends there."""
        if char == "#":
            end = self._text.find("\n", self._position)
            self._position = len(self._text) if end < 0 else end
            return False
        if char == "&":
            if not self._text.startswith("&&", self._position):
                raise NotSimple
            self._position += 1
        self._position += 1
        return char in "\n;&"

    def _end_word(self, command: list[Word]) -> None:
        if self._is_in_word:
            command.append(Word("".join(self._parts), self._expands))
        self._parts, self._is_in_word, self._expands = [], False, False

    def _read_part(self, char: str) -> None:
        self._is_in_word = True
        if char == "'":
            self._parts.append(self._take_until("'", self._position + 1))
        elif char == '"':
            self._read_double_quotes()
        elif char == "\\":
            self._parts.append(self._text[self._position + 1 : self._position + 2])
            self._position += 2
        elif char == "`":
            self._expands = True
            self._parts.append("`" + self._take_until("`", self._position + 1) + "`")
        elif char == "$":
            self._read_expansion()
        else:
            self._expands = self._expands or char in "*?[" or (char == "~" and not self._parts)
            self._parts.append(char)
            self._position += 1

    def _read_double_quotes(self) -> None:
        self._position += 1
        while not self._text.startswith('"', self._position):
            if self._position >= len(self._text):
                raise NotSimple
            char = self._text[self._position]
            if char == "$":
                self._read_expansion()
                continue
            if char == "`":
                raise NotSimple
            if char == "\\" and self._text[self._position + 1 : self._position + 2] in ('"', "\\", "$", "`"):
                self._position += 1
                char = self._text[self._position]
            self._parts.append(char)
            self._position += 1
        self._position += 1

    def _read_expansion(self) -> None:
        if self._text.startswith("$(", self._position):
            raise NotSimple
        self._expands = True
        if self._text.startswith("${", self._position):
            self._parts.append("${" + self._take_until("}", self._position + 2) + "}")
            return
        self._parts.append("$")
        self._position += 1

    def _take_until(self, end: str, start: int) -> str:
        position = self._text.find(end, start)
        if position < 0:
            raise NotSimple
        self._position = position + 1
        return self._text[start:position]
