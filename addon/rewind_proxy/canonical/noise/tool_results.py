"""Noise in tool results only: durations, process ids, ids made at random (DESIGN §5).

In a user's words these mean something. What a word before it tells is in `rules`, what a whole line
does in `lines`, what a table's header does in `processes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewind_proxy.canonical.literals import Literals
from rewind_proxy.canonical.noise.durations import DURATION_WORDS, duration_spans
from rewind_proxy.canonical.noise.http import PROXY_WORDS, proxy_spans
from rewind_proxy.canonical.noise.lines import LINE_WORDS, line_spans
from rewind_proxy.canonical.noise.processes import AGE_WORDS, PROCESS_WORDS, age_spans, process_spans
from rewind_proxy.canonical.noise.quoted import quoted_strings
from rewind_proxy.canonical.noise.rules import NOISE_IN_TOOL_RESULTS
from rewind_proxy.canonical.spans import Span
from rewind_proxy.canonical.text import folded, places

_CONTAINER_WORDS = frozenset({"container id", "ready", "pod/"})
_LONGEST_ROW = 1000
_CONTAINER_ROW = re.compile(r"([0-9a-f]{12})[ \t]")
# Kubernetes makes names of letters and digits that spell no word.
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_RANDOM_PART = re.compile(
    rf"-(?<=[a-z0-9]-)(?:{_SAFE}{{8,10}}-({_SAFE}{{5}})|([0-9]{{8}}-{_SAFE}{{5}})"
    rf"|((?=[a-z]*[0-9])(?=[0-9]*[a-z]){_SAFE}{{5}}))\Z"
)
# In a table the first or second word of a row, before how many containers are ready; else behind `pod/`.
_POD_NAME = re.compile(
    r"(?:(?m:^)(?:[a-z0-9-]{1,64}[ \t]{1,40})?(?=[^\s]{1,254}[ \t]{1,40}[0-9]{1,3}/[0-9]{1,3}(?![^\s]))"
    r"|(?<!\w)pod/)"
    r"([a-z0-9][a-z0-9.-]{0,252})(?![\w-])"
)


def _container_spans(text: str) -> Iterator[Span]:
    """The ids of the table that `docker ps` prints, and the random part of what `kubectl get pods` does."""
    for at in places(text, "CONTAINER ID"):
        line = text.find("\n", at, at + _LONGEST_ROW) + 1
        while line and (row := _CONTAINER_ROW.match(text, line)):
            yield Span(*row.span(1), "RS203", "container", row[1])
            line = text.find("\n", row.end(), row.end() + _LONGEST_ROW) + 1
    if "READY" in text or "pod/" in text:
        for pod in _POD_NAME.finditer(text):
            if random := _RANDOM_PART.search(text, *pod.span(1)):
                group = random.lastindex or 1
                yield Span(*random.span(group), "RS203", "pod", random[group])


# What Java prints of an object that does not say how: its class and where it was, as a hash.
# Digits alone are a number, and seven of both behind a name without a package are a commit.
_HASH_CODE = re.compile(r"@((?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{6,8})(?![\w-])")
_SHORT_COMMIT = 7
_CLASS_BEFORE = re.compile(
    r"(?:(?<![\w./$@-])(?:[a-z][\w$]{0,40}\.){0,8}[A-Z][\w$]{0,60}|\[{1,3}(?:[BCDFIJSZ]|L[\w.$/]{1,80};))\Z",
    re.ASCII,
)
_LONGEST_CLASS = 120


def _hash_code_spans(text: str) -> Iterator[Span]:
    for code in _HASH_CODE.finditer(text):
        at = code.start()
        named = _CLASS_BEFORE.search(text, max(0, at - _LONGEST_CLASS), at)
        if named and (len(code[1]) != _SHORT_COMMIT or not named[0].isalnum()):
            yield Span(*code.span(1), "RS203", "address", code[1])


NOISE_WORDS = DURATION_WORDS.union(
    LINE_WORDS,
    PROCESS_WORDS,
    PROXY_WORDS,
    AGE_WORDS,
    _CONTAINER_WORDS,
    {"@"},
    *(noise.words for noise in NOISE_IN_TOOL_RESULTS),
)
"""One of these, in lower case, stands in every text with noise that is more than a number and its unit."""
_WORDS = Literals(NOISE_WORDS)
_DEEPEST = 3
_BY_WORD: dict[str, list[int]] = {}
"""The places of rules in their table, by what their matches start with."""
for _place, _noise in enumerate(NOISE_IN_TOOL_RESULTS):
    for _word in _noise.words:
        _BY_WORD.setdefault(_word, []).append(_place)


def noise_spans(text: str, words: frozenset[str], depth: int = 0) -> Iterator[Span]:
    """What is noise in the text of a tool result. `words` are those of `NOISE_WORDS` that it holds.

    In strings of JSON too, which may be in strings themselves: `depth` says in how many `text` is.
    """
    if depth < _DEEPEST:
        for quoted in quoted_strings(text):
            for span in noise_spans(quoted.text, _WORDS.within(quoted.text.lower()), depth + 1):
                yield span._replace(start=quoted.place(span.start), end=quoted.place(span.end))
    yield from _plain_spans(text, words)


def _plain_spans(text: str, words: frozenset[str]) -> Iterator[Span]:
    if not PROCESS_WORDS.isdisjoint(words):
        for start, end in process_spans(text):
            yield Span(start, end, "RS202", "process", text[start:end], numbered=False)
    yield from line_spans(text, words)
    if not _CONTAINER_WORDS.isdisjoint(words):
        yield from _container_spans(text)
    for start, end in duration_spans(text, words):
        yield Span(start, end, "RS201", "duration", text[start:end], numbered=False)
    if NOISE_WORDS.isdisjoint(words):
        return
    if not PROXY_WORDS.isdisjoint(words):
        for start, end in proxy_spans(text):
            yield Span(start, end, "RS204", "proxy", text[start:end], numbered=False)
    if not AGE_WORDS.isdisjoint(words):
        for start, end in age_spans(text):
            yield Span(start, end, "RS201", "duration", text[start:end], numbered=False)
    if "@" in words:
        yield from _hash_code_spans(text)
    lower = folded(text)
    # In the order of the table: of two rules that overlap the earlier one's span wins.
    for index in sorted({index for word in words for index in _BY_WORD.get(word, ())}):
        noise = NOISE_IN_TOOL_RESULTS[index]
        for word in filter(words.__contains__, noise.words):
            for at in places(lower, word):
                if match := noise.pattern.match(text, at):
                    yield Span(*match.span(1), noise.rule, noise.kind, match[1], noise.numbered)
