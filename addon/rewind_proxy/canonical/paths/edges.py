"""Where a path starts and ends in a text, whatever stands before and after it."""

from __future__ import annotations

import re

# Beside letters and digits: what makes the character after it the middle of a longer path or word.
_INSIDE = "_./\\~@%+-"
# Scripts that put no blank between words: a path may follow a letter of theirs, or precede one.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNSPACED_LETTER = re.compile(f"[{_UNSPACED}]")
_FURTHEST_LETTER = 32
# URLs whose path is one of this machine; the host is empty, `localhost`, or tells where an editor runs.
_LOCAL_SCHEME = re.compile(r"(?i)(?<![a-z])(?:file|vscode[a-z-]*|cursor|windsurf|zed|positron)\Z")
_HOST = re.compile(r"[\w.%@+-]*")
_LONGEST_SCHEME = 24
_LONGEST_HOST = 64
_COLOUR = re.compile(r"\[[\d;:]*[A-Za-z]")  # of a terminal (ECMA-48), whose escape may be escaped itself
_LONGEST_COLOUR = 26
_CLOSING_TAG = re.compile(r"</[A-Za-z][\w.:-]{0,64}[ ]?>")
_NO_OPTION = "_./\\-"  # what stands before the dash of no option
_LONG_OPTIONS = ("-isystem", "-iquote", "-idirafter", "-imacros", "-include")
_ESCAPED_BLANKS = "nrtfv"
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
        return before != "<" or _CLOSING_TAG.match(text, start - 1) is None  # `</root>`
    earlier = text[start - 2 : start - 1] if start > 1 else ""
    if before in "+-":
        return earlier in ("", "\n")  # a line of a diff
    if before == "@":
        return not (earlier.isalnum() or earlier in _INSIDE) or not earlier  # an agent's way to name a file
    if before == "\\":
        return earlier == "\x1b"  # the end of a link in a terminal
    if before.isalpha():
        if before.isascii():
            if _ends_escape_or_option(text, start, before, earlier):
                return True
        elif _UNSPACED_LETTER.match(before):
            return _unspaced_word(text, start)
    return _ends_local_host(text, start)


def _ends_escape_or_option(text: str, start: int, before: str, earlier: str) -> bool:
    """Whether `\\n` of code, a terminal's colour or `-I` stands right before."""
    if earlier == "\\" and before in _ESCAPED_BLANKS:
        return True
    if earlier == "-":
        dash = text[start - 3 : start - 2] if start > 2 else ""
        return not dash or not (dash.isalnum() or dash in _NO_OPTION)
    colour = text.rfind("[", max(0, start - _LONGEST_COLOUR), start)
    if colour >= 0 and _COLOUR.fullmatch(text, colour, start):
        return True
    return text.endswith(_LONG_OPTIONS, 0, start)


def _unspaced_word(text: str, start: int) -> bool:
    """Whether the word before is of a script without blanks, and no folder's name."""
    first = start - 1
    while first > max(0, start - _FURTHEST_LETTER) and _UNSPACED_LETTER.match(text, first - 1):
        first -= 1
    return not first or text[first - 1] not in "/\\"


def _ends_local_host(text: str, start: int) -> bool:
    """Whether the path is that of a URL of this machine: `file:///home/a`, `vscode://file/home/a`."""
    mark = text.rfind("://", max(0, start - _LONGEST_HOST), start)
    if mark < 0 or not _HOST.fullmatch(text, mark + 3, start):
        return False
    return _LOCAL_SCHEME.search(text[max(0, mark - _LONGEST_SCHEME) : mark]) is not None


def ends_name(text: str, end: int) -> bool:
    """Whether the name of a folder may end here: `/home/a` does not end in `/home/ab` or `/home/a.old`."""
    after = text[end : end + 1]
    if not after or not (after.isalnum() or after in "._-@+"):
        return True
    if after == ".":
        return _ENDING_DOTS.match(text, end) is not None  # a full stop may end a sentence: "in /home/a/app."
    return bool(_UNSPACED_LETTER.match(after)) and not _UNSPACED_LETTER.match(text, end - 1)
