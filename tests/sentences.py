"""Random sentences of a Lark grammar, made by walking its rules, and sentences with mistakes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping

from lark import Lark
from lark.grammar import NonTerminal, Rule, Symbol
from lark.lexer import PatternStr


class Sentences:
    """``samples``: texts of each terminal that is a regular expression; ``blanks``: what the grammar ignores."""

    def __init__(self, grammar: Lark, samples: Mapping[str, Iterable[str]], blanks: tuple[str, ...]) -> None:
        self.rules: dict[str, list[Rule]] = {}
        for rule in grammar.rules:
            self.rules.setdefault(rule.origin.name, []).append(rule)
        self.blanks = blanks
        self.texts = {
            terminal.name: (terminal.pattern.value,)
            if isinstance(terminal.pattern, PatternStr)
            else tuple(samples[terminal.name])
            for terminal in grammar.terminals
            if terminal.name not in grammar.ignore_tokens
        }
        for terminal in grammar.terminals:
            pattern = re.sub(r"\(\?<?=[^)]*\)+", "", terminal.pattern.to_regexp())  # samples stand alone
            for text in self.texts.get(terminal.name, ()):
                assert re.fullmatch(pattern, text), f"{terminal.name} is not {text}"
        self.heights = self._heights()
        self.used: set[Rule] = set()

    def _heights(self) -> dict[str, int]:
        """How deep the least tree of each rule is: what a walk takes once it is to come to its end."""
        heights: dict[str, int] = {}
        while len(heights) < len(self.rules):
            for name, rules in self.rules.items():
                known = [self._height(rule, heights) for rule in rules]
                least = min((height for height in known if height is not None), default=None)
                if least is not None:
                    heights.setdefault(name, least)
        return heights

    def _height(self, rule: Rule, heights: Mapping[str, int]) -> int | None:
        parts = [heights.get(symbol.name) for symbol in rule.expansion if isinstance(symbol, NonTerminal)]
        return None if None in parts else 1 + max((part for part in parts if part is not None), default=0)

    def tokens(self, rng: random.Random, start: str = "start", size: int = 12) -> list[str]:
        """The tokens of a sentence: by rules that none has had yet, where there are some. The walk takes the shortest
        way after ``size`` tokens, and now and then before."""
        found: list[str] = []
        left: list[Symbol] = [NonTerminal(start)]
        while left:
            symbol = left.pop()
            if not isinstance(symbol, NonTerminal):
                found.append(rng.choice(self.texts[symbol.name]))
                continue
            rules = self.rules[symbol.name]
            if len(found) + len(left) > size or rng.random() < 0.2:
                least = self.heights[symbol.name]
                rules = [rule for rule in rules if self._height(rule, self.heights) == least]
            rule = rng.choice([rule for rule in rules if rule not in self.used] or rules)
            self.used.add(rule)
            left += reversed(rule.expansion)
        return found

    def mutant(self, tokens: list[str], rng: random.Random) -> list[str]:
        """``tokens`` with one or two of them left out, doubled, exchanged, or others put in."""
        tokens = list(tokens)
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(len(tokens) + 1)
            part = tokens[at : at + 1]
            other = [rng.choice(self.texts[rng.choice(list(self.texts))])]
            tokens[at : at + 1] = rng.choice(([], part * 2, other, other + part))
        return tokens

    def text(self, tokens: list[str], rng: random.Random) -> str:
        """The tokens with something or nothing between them."""
        return "".join(rng.choice(("", " ", " ", *self.blanks)) + token for token in tokens)
