"""Parse a YAML document into the JSON that kubectl would send, with the line of every field.

It rejects what kubectl silently drops: duplicate keys, unknown tags, and a second document after `...`.
"""

import base64
import binascii
import re
from collections.abc import Iterator

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from muster.api.document import JSON, FieldPath, quote
from muster.api.yaml.scalars import NotJSON, Scalar, resolve_scalar

MAX_VALUES = 100_000
"""Maximum number of values in a document after expanding its anchors: more than jobs have, and quick to parse."""

_PLAIN = "plain"
_STR, _INT, _FLOAT, _BOOL, _NULL, _TIMESTAMP, _BINARY, _MERGE, _MAP, _SEQ = (
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "timestamp", "binary", "merge", "map", "seq")
)
_KINDS: dict[str, tuple[type, ...]] = {
    _INT: (int,),
    _FLOAT: (int, float),
    _BOOL: (bool,),
    _NULL: (type(None),),
    _TIMESTAMP: (str,),
}
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")


class Unreadable(ValueError):
    """Text that is not a document: `line` counts from 1, None if it isn't known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML's parser without its scalar types: it only marks plain scalars."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)

    def scan_to_next_token(self) -> None:
        """Skip tabs between tokens, except in indentation, as kubectl's parser does."""
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()

    def compose_scalar_node(self, anchor: dict[str, Node]) -> ScalarNode:
        """Reject the tag `!`, which PyYAML would drop."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if event.tag == "!":
            raise Unreadable("the tag ! has no meaning here; remove it", event.start_mark.line + 1)
        return super().compose_scalar_node(anchor)


# kubectl's parser lacks this YAML 1.2 escape; the stubs declare the table final, but the scanner reads it from self
_Loader.ESCAPE_REPLACEMENTS = {  # type: ignore[misc]
    char: meaning for char, meaning in Scanner.ESCAPE_REPLACEMENTS.items() if char != "/"
}
_Loader.add_implicit_resolver(_PLAIN, re.compile(""), None)


def read_yaml(text: str) -> tuple[JSON, dict[FieldPath, int]] | None:
    """Parse one document; return its value and its fields' lines (from 1), or None if the text has only comments.

    Raises `Unreadable` for text that is not YAML, has no JSON form, or contains what kubectl would drop.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except Unreadable:
        raise
    except yaml.MarkedYAMLError as error:
        raise _explain(error) from None
    except yaml.YAMLError as error:
        raise Unreadable(f"not YAML: {' '.join(str(error).split())}") from None
    except (RecursionError, ValueError, OverflowError):
        # ValueError and OverflowError: an escape such as \UFFFFFFFF that is not a character
        raise Unreadable("not YAML: nested too deeply, or an escape that is no character") from None
    if node is None:
        return None
    reading = _NodeReader()
    try:
        return reading.value(node, ()), reading.lines
    except RecursionError:
        raise Unreadable("nested too deeply", _line(node)) from None


class _NodeReader:
    """Converts a document's nodes in one pass."""

    def __init__(self) -> None:
        self.lines: dict[FieldPath, int] = {}
        self._left = MAX_VALUES
        self._around: set[int] = set()

    def value(self, node: Node, path: FieldPath) -> JSON:
        self._left -= 1
        if self._left < 0:
            raise Unreadable(f"more than {MAX_VALUES} values, counting what its anchors repeat", _line(node))
        self.lines.setdefault(path, _line(node))
        if isinstance(node, ScalarNode):
            return _read_scalar(node)
        if id(node) in self._around:
            raise Unreadable("an anchor's value contains itself", _line(node))
        self._around.add(id(node))
        try:
            return self._map(node, path) if isinstance(node, MappingNode) else self._list(node, path)
        finally:
            self._around.discard(id(node))

    def _list(self, node: Node, path: FieldPath) -> list[JSON]:
        if node.tag != _SEQ or not isinstance(node, SequenceNode):
            raise _unknown_tag(node)
        return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]

    def _map(self, node: MappingNode, path: FieldPath) -> dict[str, JSON]:
        if node.tag != _MAP:
            raise _unknown_tag(node)
        result: dict[str, JSON] = {}
        own_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                for merged in _merged_nodes(value_node):
                    self._merge(self.value(merged, path), result, own_lines, key_node)
                continue
            key = _read_key(key_node)
            if key in own_lines:
                raise Unreadable(f"the key {quote(key)} occurs twice, first on line {own_lines[key]}", _line(key_node))
            own_lines[key] = _line(key_node)
            self.lines[(*path, key)] = own_lines[key]
            result[key] = self.value(value_node, (*path, key))
        return result

    def _merge(self, merged: JSON, result: dict[str, JSON], own_lines: dict[str, int], node: Node) -> None:
        if not isinstance(merged, dict):
            raise Unreadable("<< takes a map, or a list of maps", _line(node))
        for key, value in merged.items():
            # kubectl lets a later << override the key, YAML lets the key override <<: with << first both agree
            if key in own_lines:
                raise Unreadable(f"<< comes after the key {quote(key)} that it also holds; write << first", _line(node))
            result[key] = value


def _is_merge(node: Node) -> bool:
    return isinstance(node, ScalarNode) and (node.tag == _MERGE or (node.tag == _PLAIN and node.value == "<<"))


def _merged_nodes(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from reversed(node.value)  # so that the first of them wins
    else:
        yield node


def _read_key(node: Node) -> str:
    if not isinstance(node, ScalarNode):
        raise Unreadable("a key is a list or a map; keys are text", _line(node))
    raw: str = node.value
    value = _read_scalar(node)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and str(value) == raw:
        return raw
    if isinstance(value, bool) and raw in ("true", "false"):
        return raw
    # kubectl would silently rename the field: y becomes true, 010 becomes 8
    kind = "null" if value is None else "a truth value" if isinstance(value, bool) else "a number"
    raise Unreadable(f"the key {quote(raw)} is {kind} to YAML; quote it to mean the text", _line(node))


def _read_scalar(node: ScalarNode) -> Scalar:
    text: str = node.value
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise Unreadable("half of a surrogate pair is no character", _line(node))
    try:
        if node.tag == _PLAIN:
            return resolve_scalar(text)
        if node.tag == _STR:
            return text
        if node.tag == _BINARY:
            return base64.b64decode("".join(text.splitlines()), validate=True).decode("utf-8")
        if node.tag in _KINDS:
            return _read_tagged_scalar(node, text)
    except NotJSON as error:
        raise Unreadable(str(error), _line(node)) from None
    except (binascii.Error, UnicodeDecodeError):
        raise Unreadable("!!binary takes the base64 of a UTF-8 text", _line(node)) from None
    raise _unknown_tag(node)


def _read_tagged_scalar(node: ScalarNode, text: str) -> Scalar:
    value = resolve_scalar(text)
    kinds = _KINDS[node.tag]
    wrong_bool = isinstance(value, bool) and bool not in kinds
    if not isinstance(value, kinds) or wrong_bool or (node.tag == _TIMESTAMP and not _DATE.fullmatch(text)):
        raise Unreadable(f"{quote(text)} is not a {_short_tag(node.tag)}", _line(node))
    return value


def _unknown_tag(node: Node) -> Unreadable:
    return Unreadable(f"the tag {_short_tag(node.tag)} has no meaning here; remove it", _line(node))


def _short_tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _explain(error: yaml.MarkedYAMLError) -> Unreadable:
    line = None if error.problem_mark is None else error.problem_mark.line + 1
    problem = error.problem or error.context or "no YAML"
    if "'\\t'" in problem:
        return Unreadable("a tab where YAML wants spaces; indent and separate with spaces", line)
    if "duplicate anchor" in (error.context or ""):
        return Unreadable("an anchor is defined twice; choose another name", line)
    if "<document start>" in problem or "single document" in (error.context or ""):
        return Unreadable("a second document after '...'; separate documents by a line with ---", line)
    return Unreadable(f"not YAML: {problem}", line)
