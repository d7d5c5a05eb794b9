"""CEL expressions as trees: lexer and parser of the language's grammar.

Covers: every literal, operator, call and index, lists, maps, optional syntax; where something is
wrong. Does not cover: messages (no type here has any), what names mean (``cel_evaluator``).

Bounds, because anybody who makes a claim writes an expression: 10 KiB of text, trees of 100 levels.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from koordlet.model.record import dataclass

MOST_TEXT = 10 * 1024
MOST_LEVELS = 100
INT_LEAST, INT_MOST, UINT_MOST = -(2**63), 2**63 - 1, 2**64 - 1

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
  | (?P<raw>(?:[bB]?[rR]|[rR][bB])(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"[^"\n]*"|'[^'\n]*'))
  | (?P<text>[bB]?(?:\"{3}(?:\\[\s\S]|[^\\])*?\"{3}|'{3}(?:\\[\s\S]|[^\\])*?'{3}
      |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
  | (?P<double>\d*\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
  | (?P<int>(?:0x[0-9a-fA-F]+|\d+)[uU]?)
  | (?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<operator>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})"
    r"|([0-3][0-7]{2})|([\s\S]))"
)
_SHORT_ESCAPES = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "package",
        "return",
        "var",
        "void",
        "while",
    ]
)
_RELATIONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "in"))


class Uint(int):
    """An unsigned integer: another type than ``int``, and equal to one of the same worth."""

    __slots__ = ()


class CompileError(ValueError):
    """An expression that no device can satisfy, because it means nothing."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message, self.at = message, at


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression.

    Kinds: ``literal``, ``name``, ``select`` (and ``select?``), ``call``, ``method`` (its target is
    the first child), ``operator``, ``list``, ``map`` (keys and values in turn), ``optional`` (an
    element of either that may be absent).
    """

    kind: str
    value: object
    children: tuple[Node, ...]
    at: int
    levels: int
    #: How many nodes the tree under it has, itself included.
    nodes: int


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(text: str) -> Node:
    """The tree of an expression; ``CompileError`` says where it ends to be one."""
    if len(text.encode("utf-8", "surrogatepass")) > MOST_TEXT:
        raise CompileError(f"expression is longer than {MOST_TEXT} bytes", 0)
    parser = _Parser(_tokens(text))
    tree = parser.expression()
    parser.expect("end")
    return tree


def _tokens(text: str) -> list[_Token]:
    tokens = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise CompileError(f"Syntax error: token recognition error at: '{text[place]}'", place)
        kind = match.lastgroup or ""
        if kind != "space":
            spelled = match.group()
            tokens.append(_Token(spelled if kind == "operator" else kind, spelled, place))
        place = match.end()
    tokens.append(_Token("end", "<EOF>", place))
    return tokens


class _Parser:
    """Descends once through the tokens; ``_depth`` bounds its own recursion."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > MOST_LEVELS // 2:
            raise CompileError("expression recursion limit exceeded", self._token.at)
        chosen = self._disjunction()
        if token := self._take("?"):
            then = self._disjunction()
            self.expect(":")
            chosen = _node("operator", "_?_:_", (chosen, then, self.expression()), token.at)
        self._depth -= 1
        return chosen

    def expect(self, kind: str) -> _Token:
        token = self._take(kind)
        if token is None:
            wrong = self._token
            wanted = "<EOF>" if kind == "end" else f"'{kind}'"
            raise CompileError(
                f"Syntax error: mismatched input '{wrong.text}' expecting {wanted}", wrong.at
            )
        return token

    @property
    def _token(self) -> _Token:
        return self._tokens[self._place]

    def _take(self, *kinds: str) -> _Token | None:
        token = self._token
        if token.kind not in kinds:
            return None
        self._place += token.kind != "end"
        return token

    def _disjunction(self) -> Node:
        return self._flat("||", lambda: self._flat("&&", self._relation))

    def _flat(self, operator: str, operand: Callable[[], Node]) -> Node:
        """Operands of one logical operator, side by side: a long row is no deep tree."""
        at = self._token.at
        operands = [operand()]
        while self._take(operator):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else _node("operator", operator, operands, at)

    def _relation(self) -> Node:
        left = self._sum()
        while (token := self._token).kind in _RELATIONS or token.text == "in":
            self._place += 1
            left = _node("operator", token.text, (left, self._sum()), token.at)
        return left

    def _sum(self) -> Node:
        left = self._product()
        while token := self._take("+", "-"):
            left = _node("operator", token.text, (left, self._product()), token.at)
        return left

    def _product(self) -> Node:
        left = self._unary()
        while token := self._take("*", "/", "%"):
            left = _node("operator", token.text, (left, self._unary()), token.at)
        return left

    def _unary(self) -> Node:
        signs: list[_Token] = []
        while token := self._take("!", "-"):
            if signs and signs[-1].text != token.text:
                raise CompileError(f"Syntax error: extraneous input '{token.text}'", token.at)
            signs.append(token)
        if signs and signs[-1].text == "-" and self._token.kind in ("int", "double"):
            signs.pop()
            operand = self._members(self._number("-"))
        else:
            operand = self._members(self._primary())
        for sign in reversed(signs):
            operand = _node("operator", f"{sign.text}_", (operand,), sign.at)
        return operand

    def _members(self, operand: Node) -> Node:
        while token := self._take(".", "["):
            optional = self._take("?") is not None
            if token.text == "[":
                name = "_[?_]" if optional else "_[_]"
                operand = _node("operator", name, (operand, self.expression()), token.at)
                self.expect("]")
                continue
            field = self.expect("name").text
            if field in _WORDS or field == "in":
                raise CompileError(
                    f"Syntax error: no viable alternative at input '.{field}'", token.at
                )
            if not optional and self._take("("):
                arguments = (operand, *self._listed(")", self.expression))
                operand = _node("method", field, arguments, token.at)
            else:
                operand = _node("select?" if optional else "select", field, (operand,), token.at)
        return operand

    def _listed(self, end: str, element: Callable[[], Node]) -> list[Node]:
        """Elements up to the closing bracket; lists and maps may have one comma more."""
        elements: list[Node] = []
        while not self._take(end):
            if elements:
                self.expect(",")
                if end != ")" and self._take(end):
                    break
            elements.append(element())
        return elements

    def _primary(self) -> Node:  # noqa: PLR0911 -- one answer a token
        token = self._token
        self._place += token.kind != "end"
        if token.kind == "name":
            return self._name(token)
        if token.kind in ("int", "double"):
            self._place -= 1
            return self._number("")
        if token.kind in ("text", "raw"):
            return _node("literal", _string(token), (), token.at)
        if token.kind == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if token.kind == "[":
            return _node("list", None, self._listed("]", self._element), token.at)
        if token.kind == "{":
            entries = self._listed("}", self._entry)
            return _node("map", None, entries, token.at)
        if token.kind == ".":
            return self._name(self.expect("name"))
        raise CompileError(
            f"Syntax error: mismatched input '{token.text}' expecting an expression", token.at
        )

    def _name(self, token: _Token) -> Node:
        if token.text in _WORDS:
            return _node("literal", _WORDS[token.text], (), token.at)
        if token.text in _RESERVED:
            raise CompileError(f"reserved identifier: {token.text}", token.at)
        if self._take("("):
            return _node("call", token.text, self._listed(")", self.expression), token.at)
        return _node("name", token.text, (), token.at)

    def _element(self) -> Node:
        token = self._take("?")
        inner = self.expression()
        return _node("optional", None, (inner,), token.at) if token else inner

    def _entry(self) -> Node:
        token = self._take("?")
        key = self.expression()
        at = self.expect(":").at
        value = self.expression()
        return _node("optional" if token else "entry", None, (key, value), at)

    def _number(self, sign: str) -> Node:
        token = self._token
        self._place += 1
        return _node("literal", _number(sign, token), (), token.at)


def _node(kind: str, value: object, children: tuple[Node, ...] | list[Node], at: int) -> Node:
    levels = 1 + max((child.levels for child in children), default=0)
    if levels > MOST_LEVELS:
        raise CompileError("expression recursion limit exceeded", at)
    nodes = 1 + sum(child.nodes for child in children)
    return Node(kind, value, tuple(children), at, levels, nodes)


def _number(sign: str, token: _Token) -> object:
    text = token.text
    if token.kind == "double":
        return float(sign + text)
    digits = text.rstrip("uU")
    value = int(sign + digits, 16 if digits.startswith("0x") else 10) if len(digits) < 30 else 2**99
    if digits != text:
        if sign or value > UINT_MOST:
            raise CompileError("Syntax error: invalid uint literal", token.at)
        return Uint(value)
    if not INT_LEAST <= value <= INT_MOST:
        raise CompileError("Syntax error: invalid int literal", token.at)
    return value


def _string(token: _Token) -> str | bytes:
    start = min(place for place in map(token.text.find, "\"'") if place >= 0)
    prefix, quoted = token.text[:start].lower(), token.text[start:]
    width = 3 if quoted[:3] in ('"""', "'''") else 1
    body = quoted[width:-width]
    as_bytes = "b" in prefix

    def unescaped(match: re.Match[str]) -> str:
        short = match.group(6)
        if short is not None:
            if short not in _SHORT_ESCAPES:
                raise CompileError(f"Syntax error: invalid escape '\\{short}'", token.at)
            return _SHORT_ESCAPES[short]
        octal = match.group(5)
        code = int(octal, 8) if octal else int(next(filter(None, match.groups())), 16)
        unicode = match.group(3) or match.group(4)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000 or (as_bytes and unicode):
            raise CompileError(f"Syntax error: invalid escape '{match.group()}'", token.at)
        # In bytes an escape is one byte; it travels as a lone surrogate until they are encoded.
        return chr(0xDC00 + code) if as_bytes and code > 0x7F else chr(code)

    if "r" not in prefix:
        body = _ESCAPE.sub(unescaped, body)
    if as_bytes:
        try:
            return body.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise CompileError("Syntax error: invalid bytes literal", token.at) from error
    return body
