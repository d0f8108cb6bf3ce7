"""Where a path starts and ends in a text, whatever stands before and after it."""

from __future__ import annotations

import re

# Beside letters and digits: what makes the character after it the middle of a longer path or word.
_INSIDE = "_./\\~@%+-"
# Scripts that put no blank between words: a path may follow a letter of theirs, or precede one.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNSPACED_LETTER = re.compile(f"[{_UNSPACED}]")
# URLs whose path is one of this machine; the host is empty, `localhost`, or tells where an editor runs.
_SCHEMES = "file|vscode[a-z-]*|cursor|windsurf|zed|positron"
_LED = re.compile(
    r"(?:\\[nrtfv]"  # the end of a line, escaped as in JSON and code
    r"|\[[\d;:]{0,24}[A-Za-z]|\x1b\\"  # a colour of a terminal; the end of a link there (ECMA-48)
    r"|(?<![\w./\\-])-(?:[A-Za-z]|i(?:system|quote|dirafter|macros|nclude))"  # `-I/usr`: an option
    r"|(?<![\w./\\@-])@"  # `@/a/b.py`: an agent's way to name a file
    rf"|(?<![/\\{_UNSPACED}])[{_UNSPACED}]{{1,32}}"
    rf"|(?i:\b(?:{_SCHEMES}))://(?:[\w.%@+-]{{0,64}})"
    r"|(?:\A|\n)[+-])\Z"  # a line of a diff
)
_FURTHEST = 96
_ENDING_DOTS = re.compile(r"\.+(?![\w.-])")
# Bounded, so that a megabyte without a blank costs no more than its length.
REST = re.compile(r"""[^\s"'`<>|:*?,;()\[\]{}=]{0,512}""")
"""What may follow a root in a path."""
TRAILING = ".,;:!)"
"""What ends a sentence, not a path."""


def starts_path(text: str, start: int) -> bool:
    """Whether an absolute path may start here: not in the middle of another path, a URL or a word."""
    if not start:
        return True
    before = text[start - 1]
    if not (before.isalnum() or before in _INSIDE):
        return True
    if before in "/.~%":
        return text.endswith("://", 0, start) and _LED.search(text[max(0, start - 24) : start]) is not None
    # The first character is what `\A` would take for the start of a line.
    begin = max(0, start - _FURTHEST)
    return _LED.search(text[begin:start], 1 if begin else 0) is not None


def ends_name(text: str, end: int) -> bool:
    """Whether the name of a folder may end here: `/home/a` does not end in `/home/ab` or `/home/a.old`."""
    after = text[end : end + 1]
    if not after or not (after.isalnum() or after in "._-@+"):
        return True
    if after == ".":
        return _ENDING_DOTS.match(text, end) is not None  # a full stop may end a sentence: "in /home/a/app."
    return bool(_UNSPACED_LETTER.match(after)) and not _UNSPACED_LETTER.match(text, end - 1)
