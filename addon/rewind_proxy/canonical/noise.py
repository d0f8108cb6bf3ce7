"""Noise in tool results only: durations, process ids, ids that the client makes (DESIGN §5).

In a user's words these mean something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rewind_proxy.canonical.spans import Span


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """Noise that only means nothing in a tool result; group 1 is what goes."""

    rule: str
    kind: str
    pattern: re.Pattern[str]
    numbered: bool
    words: tuple[str, ...] = ()
    """One of these stands in every match."""
    folded: tuple[str, ...] = ()
    """The same, in any case of letters."""


# CLIENTS.md: what Codex, Claude Code, Gemini CLI and Qwen Code write into tool results.
NOISE_IN_TOOL_RESULTS = (
    NoiseRule(
        "RS201",
        "duration",
        re.compile(
            r"(\d(?<![\w.,/-]\d)\d*(?:\.\d+)?) ?"  # led by the digit, which is quicker to search for
            r"(?:ms|milliseconds?|µs|us|ns|s|secs?|seconds?|mins?|minutes?)(?![\w/-])"
        ),
        False,
    ),
    NoiseRule(
        "RS201",
        "duration",
        re.compile(r"(?i:duration|elapsed|wall[ _]time)\w*\"?\s*[:=]?\s*(\d+(?:\.\d+)?)"),
        False,
        folded=("duration", "elapsed", "wall"),
    ),
    NoiseRule(
        "RS202",
        "process",
        re.compile(
            r"[Pp](?:(?<!\w.)(?:id|(?<=P)ID|rocess (?:[Gg]roup )?(?:[Ii][Dd])?)|(?<=P)GID)\"?[:= ]\s*(\d+)\b"
        ),
        False,
        ("pid", "Pid", "PID", "PGID", "rocess "),
    ),
    NoiseRule("RS203", "chunk", re.compile(r"Chunk ID: ([0-9a-f]{4,})\b"), True, ("Chunk ID: ",)),
    NoiseRule("RS203", "agent", re.compile(r"agent_?[iI]d\"?[:=]\s*\"?(a[0-9a-f]{8,})\b"), True, ("agent",)),
    NoiseRule("RS203", "task", re.compile(r"\bID: (b[a-z0-9]{8})\b"), True, ("ID: b",)),
    NoiseRule("RS203", "task", re.compile(r"/tasks/(b[a-z0-9]{8})\.output\b"), True, ("/tasks/b",)),
    NoiseRule(
        "RS203", "result", re.compile(r"/tool-results/([A-Za-z0-9_-]{6,})\.\w+"), True, ("/tool-results/",)
    ),
)


def noise_spans(text: str) -> Iterator[Span]:
    """What is noise in the text of a tool result."""
    folded = text.lower() if text.isascii() else None
    for noise in NOISE_IN_TOOL_RESULTS:
        if noise.words and not any(word in text for word in noise.words):
            continue
        if noise.folded and folded and not any(word in folded for word in noise.folded):
            continue  # beyond ASCII `re` knows more letters that are alike than `lower` does
        for match in noise.pattern.finditer(text):
            yield Span(*match.span(1), noise.rule, noise.kind, match.group(1), noise.numbered)
