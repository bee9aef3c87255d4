"""Colours for litmus tests wherever Pygments gives them: documentation, notebooks, ``pygmentize``.

Orders and scopes stand out, as they are what the memory model asks about (PTX ISA 8.4, 8.5).
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

__all__ = ["LitmusLexer"]

_ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel", "sc", "volatile", "mmio")
_SCOPES = ("cta", "cluster", "gpu", "sys")
_PLACES = ("warp", "cta", "cluster", "grid", "gpu", "host", "overlap")


class LitmusLexer(RegexLexer):  # type: ignore[misc] # Pygments has no types
    """Litmus tests in PTX, in columns or blocks. Nothing in them is an error here: the readers of ptxmm find those."""

    name = "PTX litmus test"
    url = "https://docs.nvidia.com/cuda/parallel-thread-execution/"
    aliases: ClassVar[list[str]] = ["litmus"]
    filenames: ClassVar[list[str]] = ["*.litmus"]
    version_added = ""
    tokens: ClassVar = {
        "root": [
            (r"^(PTX)([ \t]+)(.*)$", bygroups(Keyword.Namespace, Whitespace, Name.Class)),
            (r'^"[^"\n]*"$', String.Doc),
            (r"^([A-Za-z]+)(=)(.*)$", bygroups(Name.Attribute, Operator, String)),
            (r"\(\*(?:.|\n)*?\*\)|/\*(?:.|\n)*?\*/", Comment.Multiline),
            (r"//.*$", Comment.Single),
            (r"\s+", Whitespace),
            (r"~?\b(?:exists|forall)\b|\b(?:filter|locations)\b", Keyword),
            (r"\bP\d+\b", Name.Label),
            (words(_PLACES, prefix=r"(?<=[@,] )", suffix=r"\b"), Keyword.Type),
            (words(_ORDERS, prefix=r"\.", suffix=r"\b"), Keyword.Reserved),
            (words(_SCOPES, prefix=r"\.", suffix=r"\b"), Keyword.Type),
            (r"\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*", Name.Decorator),
            (r"\b[a-z]\w*(?=\.[a-z])", Name.Builtin),
            (r"\b0[xX][0-9a-fA-F]+\b|\b0[fFdD][0-9a-fA-F]{8,16}\b|\b\d+(?:\.\d+)?\b", Number),
            (r"[A-Za-z_$%][\w$]*", Name),
            (r"/\\|\\/|[=!<>]=|[~<>=!&+@-]", Operator),
            (r"[][{}(),;:|]", Punctuation),
            (r".", Punctuation),
        ]
    }
