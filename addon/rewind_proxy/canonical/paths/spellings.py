"""How one folder may be written: with other separators, on another system's mount, escaped, as a slug."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from rewind_proxy.canonical.paths.edges import ends_name, starts_path
from rewind_proxy.canonical.paths.shapes import start_of_drive

_DRIVE = re.compile(r"([A-Za-z]):(?:[\\/]+|\Z)")
# WSL, Cygwin and Git Bash have the drives of Windows so.
_MOUNT = re.compile(r"/(?:mnt/|cygdrive/)?([a-z])/(?=[^/])")
_WSL = re.compile(r"(?i)[\\/]{2,4}wsl(?:\$|%24|\.localhost)[\\/]+[^\\/]+(?=[\\/])")
_SHARE = re.compile(r"\\\\+(?=[^\\/])")
# macOS has these as links: `/tmp` is `/private/tmp`.
_PRIVATE = re.compile(r"/private(?=/(?:tmp|var|etc)(?:/|\Z))")
_LINKED = re.compile(r"/(?:tmp|var|etc)(?:/|\Z)")
_SEPARATORS = re.compile(r"[\\/]+")
_NO_WORD = re.compile(r"[^A-Za-z0-9]")
_SEPARATOR = r"(?:\\{1,4}|/)"
_SHORT_SLUG = 6
MOUNTS = ("/mnt/", "/cygdrive/", "/")
"""Where WSL, Cygwin and Git Bash have the drives of Windows."""
_LEAD = 96


def value_in_url(folder: str) -> str:
    """A folder, or a name of one, as the value of a parameter."""
    return quote(folder, safe="", errors="surrogatepass")


ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda folder: quote(folder, errors="surrogatepass"),
    value_in_url,
    lambda folder: folder.replace(" ", "\\ "),
    lambda folder: json.dumps(folder)[1:-1],
)
"""How a POSIX folder is written in a URL and as a value in one, and with blanks or other letters in a shell
and in ASCII JSON."""


def escaped_slashes(folder: str) -> str:
    """A folder as some write it in JSON."""
    return folder.replace("/", "\\/")


def slug_of(folder: str) -> str:
    """The name of a folder made of a path, as Claude Code and others name theirs."""
    return _NO_WORD.sub("-", folder)


@lru_cache(maxsize=1024)
def identity(folder: str) -> str:
    """The same text for two spellings of one folder, with `/` between names."""
    if share := _WSL.match(folder):
        folder = _SEPARATORS.sub("/", folder[share.end() :])
    if drive := _DRIVE.match(folder):
        return f"{drive[1].lower()}:/{_SEPARATORS.sub('/', folder[drive.end() :])}".rstrip("/")
    if mount := _MOUNT.match(folder):
        return f"{mount[1]}:/{folder[mount.end() :]}".rstrip("/")
    if _SHARE.match(folder):
        return "/" + _SEPARATORS.sub("/", folder)
    return _PRIVATE.sub("", folder, 1)


def mounted(folder: str, mount: str) -> str:
    """A folder with a drive, as it stands below a mount: `C:\\a` is `/mnt/c/a`."""
    drive, _, rest = identity(folder).partition(":")
    return f"{mount}{drive}{rest}"


def linked(folder: str) -> tuple[str, ...]:
    """The other names of a folder on macOS: `/tmp/a` is `/private/tmp/a`."""
    same = identity(folder)
    return tuple(name for name in (same, f"/private{same}") if name != folder) if _LINKED.match(same) else ()


@dataclass(frozen=True, slots=True)
class _Spellings:
    plain: tuple[str, ...]
    """As the root is written, and what other plain text is the same folder."""
    escaped: str
    """With `\\/` between names, as some write JSON."""
    slug: str
    tail: re.Pattern[str] | None
    """After the drive or the server of a Windows path, with any separators."""
    lead: re.Pattern[str] | None
    """What stands before `tail`."""
    wsl: re.Pattern[str] | None
    """A POSIX path as Windows sees it."""
    coded: re.Pattern[str]
    """As a value in a URL, where separators and colons are escaped too."""


@lru_cache(maxsize=1024)
def _spellings(literal: str) -> _Spellings:
    same = identity(literal)
    slug = slug_of(literal)
    coded = re.compile(_coded(same) + _CODED_END)
    if same[1:2] == ":" or same.startswith("//"):
        head, _, rest = same.rstrip("/").removeprefix("//").partition("/")
        names = rest.split("/") if rest else []
        tail = r"[\\/]" + _SEPARATOR.join(map(_in_url_or_not, names))
        if same.startswith("//"):
            lead = rf"(?:\\{{2,8}}|//){re.escape(head)}[\\/]{{0,3}}\Z"
        else:
            letter = f"[{head[0]}{head[0].upper()}]"
            lead = rf"(?:{letter}(?::|%3[Aa])|/(?:mnt/|cygdrive/)?{head[0]})[\\/]{{0,3}}\Z"
        return _Spellings((), "", slug, re.compile(tail) if names else None, re.compile(lead), None, coded)
    plain = [literal, same, *linked(literal)]
    if not literal.isascii() or " " in literal:
        plain += [spelt(same) for spelt in ESCAPES]
    wsl = _SEPARATOR.join(re.escape(name) for name in same.strip("/").split("/"))
    return _Spellings(
        tuple(dict.fromkeys(plain)),
        escaped_slashes(same),
        slug,
        None,
        None,
        re.compile(rf"(?i:[\\/]{{2,4}}wsl(?:\$|%24|\.localhost))[\\/]{{1,4}}[\w.-]{{1,64}}{_SEPARATOR}{wsl}"),
        coded,
    )


_CODED_END = r"(?![\w.@+-])(?!%(?!2[Ff]|5[Cc]|2[26]|0[AaDd]|3[BbCcEe]))"
"""The end of a name: a file below it follows, or what is in no name, as a quote or the next parameter."""


def _coded(same: str) -> str:
    """A pattern of a folder in which each separator is `%2F` or `%5C`."""
    drive = f"[{same[0]}{same[0].upper()}](?::|%3[Aa])" if same[1:2] == ":" else ""
    names = (same[2:] if drive else same).strip("/").split("/")
    return drive + "".join(f"%(?:2[Ff]|5[Cc])(?:{_as_value(name)})" for name in names)


def _in_url_or_not(name: str) -> str:
    quoted = quote(name, errors="surrogatepass")
    return re.escape(name) if quoted == name else f"(?:{re.escape(name)}|{re.escape(quoted)})"


def _as_value(name: str) -> str:
    quoted = value_in_url(name)
    return "|".join(dict.fromkeys(re.escape(each) for each in (quoted, quoted.replace("%20", "+"))))


def occurrences(text: str, literal: str) -> Iterator[tuple[int, int]]:
    """Where a root stands, in whatever spelling: (start, end)."""
    known = _spellings(literal)
    # One character is quick to look for, more are not; most texts hold none of these.
    slash, backslash, coded = "/" in text, "\\" in text, "%" in text
    if slash or coded or "/" not in literal:  # a setting may name any text
        for spelling in known.plain:
            yield from _plain(text, spelling)
    if known.escaped and backslash and "\\/" in text:
        yield from _plain(text, known.escaped)
    if coded and ("%2" in text or "%5" in text):
        for match in known.coded.finditer(text):
            if starts_path(text, match.start()):
                yield match.span()
    if slash or backslash:
        yield from _of_windows(text, known)
    start = text.find(known.slug)
    while start >= 0:
        end = start + len(known.slug)
        if is_slug(text, start, end):
            yield start, end
        start = text.find(known.slug, end)


def _of_windows(text: str, known: _Spellings) -> Iterator[tuple[int, int]]:
    """A folder of Windows, and one of WSL as Windows sees it."""
    if known.wsl and "wsl" in text:
        for match in known.wsl.finditer(text):
            if starts_path(text, match.start()) and ends_name(text, match.end()):
                yield match.span()
    if known.tail and known.lead:
        for match in known.tail.finditer(text):
            lead = known.lead.search(text[max(0, match.start() - _LEAD) : match.start()])
            if lead and ends_name(text, match.end()):
                length = len(lead.group())
                start = _start(text, match.start() - length, lead.group())
                if start is not None:
                    yield start, match.end()


def _plain(text: str, spelling: str) -> Iterator[tuple[int, int]]:
    start = text.find(spelling)
    while start >= 0:
        end = start + len(spelling)
        if starts_path(text, start) and ends_name(text, end):
            yield start, end
        start = text.find(spelling, end)


def _start(text: str, start: int, lead: str) -> int | None:
    """Where the path starts whose drive, mount or server is `lead`."""
    if lead[0].isalpha():
        return start_of_drive(text, start)
    if lead.startswith("//") and text.endswith("file:", 0, start):
        return start + 2  # the share of a `file:` URL stands where another has no host
    return start if starts_path(text, start) else None


def is_slug(text: str, start: int, end: int) -> bool:
    """Whether the slug at `text[start:end]` stands for its folder: a short one may be any word."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before in ("/", "\\") and start and after == "-":
        return True  # a folder below the root has a slug too, which starts with the root's
    if end - start <= _SHORT_SLUG:  # `-app` is a word too: only a whole name in a path is `/app`
        return before in ("/", "\\") and after in ("/", "\\", "")
    return not (before.isalnum() or before == "-" or after.isalnum() or after in {"-", "_"})
