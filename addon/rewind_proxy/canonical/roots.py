"""Where a project, a home and the temp folder are, as an agent's own words tell (DESIGN §5, "Paths").

`discover` reads one text leaf; `find_roots` puts together what the leaves of a request told; `root_spans`
finds the roots again in a leaf. Roots are matched as whole path prefixes, in either separator, and as slugs
(`-home-a-app`, as Claude Code names its folders).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from rewind_proxy.canonical.preset import Cue, Cues
from rewind_proxy.canonical.spans import SEPARATOR, Span

RootKind = Literal["cwd", "home", "tmp", "root"]

_PATH = r"""(?:/|[A-Za-z]:[\\/])[^\s"'`<>|*?]*"""
# CLIENTS.md: Codex `<cwd>`, workspace roots `<root>`; Claude Code "Primary working directory:"; Gemini CLI
# "I'm currently working in the directory:".
_CWD_CUES = (
    re.compile(r"<cwd>\s*([^<\n]+?)\s*</cwd>"),
    re.compile(
        rf"(?i:working directory|working in the directory|workspace (?:root|folder|directory))"
        rf"(?i:\s+is)?\s*[:=]?\s*[\"'`]?({_PATH})"
    ),
    re.compile(rf"\b(?i:cwd)[\"']?\s*[:=]\s*[\"'`]?({_PATH})"),
    re.compile(r"<root>\s*([^<\n]+?)\s*</root>"),
)
_CUE_WORDS = re.compile("[cC][wW][dD]|irectory|orkspace|<root>")
# What stands before one of these folders is a home: agents keep their own state there.
_HOME_FOLDER = re.compile(
    r"[\\/]\.(?:claude|codex|gemini|qwen|copilot|opencode|config|cache|local|npm|nvm|ssh|cargo|bashrc|zshrc)(?=[\\/\s\"'`<>]|$)"
)
# Literal-led, so that a megabyte of prose costs a fraction of a millisecond (MITMPROXY.md).
_POSIX_SHAPE = re.compile(
    r"/(?:(?P<ci>builds/[\w.-]+/[\w.-]+|home/runner/work/[\w.-]+/[\w.-]+|github/workspace|workspaces?(?=/)(?:/[\w.-]+)?)"
    r"|(?P<home>home/[\w.@+-]+|Users/[\w.@+-]+|root|var/root)"
    r"|(?P<tmp>tmp|private/tmp|var/tmp|(?:private/)?var/folders/[\w+]+/[\w+]+/T))(?![\w@+-])"
)
_WINDOWS_SHAPE = re.compile(
    r"(?P<drive>[A-Za-z]):(?P<sep>\\\\?|/)"
    r"(?:(?P<tmp>Users(?P=sep)[^\\/\s\"'`<>|:*?]+(?P=sep)AppData(?P=sep)Local(?P=sep)Temp)"
    r"|(?P<home>Users(?P=sep)[^\\/\s\"'`<>|:*?]+)"
    r"|(?P<ci>a(?P=sep)[\w.-]+(?P=sep)[\w.-]+))"
)
_WINDOWS_LOOK = re.compile(r":(?:\\\\?|/)(?:Users|a[\\/])")
_BEFORE = re.compile(r"[\w./\\~@%+-]")
# Bounded, so that a megabyte without a blank costs no more than its length.
_REST = re.compile(r"""[^\s"'`<>|:*?,;()\[\]{}=]{0,512}""")
_MAX_PATHS = 64
_MAX_NAMES = 8
_SHORT_SLUG = 6
_TRAILING = ".,;:!)"


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that is the same place on every machine: `literal` is written as in the request."""

    kind: RootKind
    literal: str


@dataclass(frozen=True, slots=True)
class Found:
    """What one leaf tells: folders by cue, and the paths that lie below a home or a CI root."""

    cwd: tuple[str, ...] = ()
    home: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    """Further folders that are the same place on every machine."""


NOTHING = Found()


def discover(text: str, cues: Cues | None = None) -> Found:
    """The folders and paths that one text leaf names; `cues` are those of the agent that wrote it."""
    cwd = tuple(_folders(text, _CWD_CUES)) if _CUE_WORDS.search(text) else ()
    home = tuple(_home_cues(text)) if "/." in text or "\\." in text else ()
    paths = tuple(islice(_shaped_paths(text), _MAX_PATHS)) if "/" in text or ":\\" in text else ()
    other: tuple[str, ...] = ()
    if cues:
        cwd = (*_cued(text, cues.cwd), *cwd)
        home = (*_cued(text, cues.home), *home)
        other = tuple(_cued(text, cues.root))
    return Found(cwd, home, paths, other) if cwd or home or paths or other else NOTHING


def _cued(text: str, cues: Iterable[Cue]) -> Iterator[str]:
    return _folders(text, (cue.pattern for cue in cues if cue.hint in text))


def _folders(text: str, patterns: Iterable[re.Pattern[str]]) -> Iterator[str]:
    for cue in patterns:
        for match in cue.finditer(text):
            folder = match.group(1).rstrip(_TRAILING).rstrip("/\\")
            if len(folder) > 1 and (folder.startswith("/") or folder[1:2] == ":"):
                yield folder


def _home_cues(text: str) -> Iterator[str]:
    for match in _HOME_FOLDER.finditer(text):
        start = match.start()
        # A path token is short: 512 characters back keeps this linear on a text of separators.
        begin = max(0, start - 512)
        token = re.split(r"[\s\"'`<>|*?,;()=\[\]{}]", text[begin:start])[-1]
        if token.startswith("file://"):
            token = token.removeprefix("file://")
        if re.match(r"/[^/]|[A-Za-z]:[\\/]", token) and "://" not in token:
            yield token


def _shaped_paths(text: str) -> Iterator[str]:
    for match in _shapes(text):
        if match.group("tmp") is None and _starts_path(text, match.start()):
            rest = _REST.match(text, match.end())
            end = rest.end() if rest else match.end()
            yield text[match.start() : end].rstrip(_TRAILING)


def _shapes(text: str) -> Iterator[re.Match[str]]:
    """Where a home, CI or temp folder may start."""
    if "/" in text:
        yield from _POSIX_SHAPE.finditer(text)
    if _WINDOWS_LOOK.search(text):
        yield from _WINDOWS_SHAPE.finditer(text)


def _starts_path(text: str, start: int) -> bool:
    if start == 0 or not _BEFORE.match(text, start - 1):
        return True
    return text.endswith("file://", 0, start)


def find_roots(found: Sequence[Found], extra: Iterable[str] = ()) -> tuple[Root, ...]:
    """The roots of a request from what its leaves told, in order; longest literal first.

    The first `cwd` cue wins; without one it is the deepest common folder of the paths in the first leaves
    that hold any, two paths at least, when that lies below the home or CI root itself.
    """
    # Of the first leaf that has a cue alone: a later "why is the working directory /etc?" moves nothing.
    cwd = list(next((leaf.cwd for leaf in found if leaf.cwd), ()))
    if not cwd:
        common = _common_folder(found)
        cwd = [common] if common else []
    roots: dict[str, RootKind] = dict.fromkeys(extra, "root")
    for folder in cwd:
        if not any(_below(folder, other) for other in roots):
            roots.setdefault(folder, "cwd")
    # After the project's: agents keep work trees below a folder of theirs.
    for leaf in found:
        for folder in leaf.other:
            roots.setdefault(folder, "root")
    for leaf in found:
        for folder in leaf.home:
            if folder not in roots and not any(_below(folder, other) for other in roots):
                roots.setdefault(folder, "home")
    return tuple(Root(kind, literal) for literal, kind in sorted(roots.items(), key=lambda r: -len(r[0])))


def _below(folder: str, other: str) -> bool:
    return folder.startswith(other) and folder[len(other) : len(other) + 1] in ("/", "\\")


def _common_folder(found: Sequence[Found]) -> str | None:
    paths: list[str] = []
    for leaf in found:
        paths.extend(path for path in leaf.paths if path not in paths)
        if len(paths) >= 2:
            break
    if len(paths) < 2:
        return None
    parts = [re.split(r"([\\/]+)", path)[:-2] for path in paths]
    common: list[str] = []
    for column in zip(*parts, strict=False):
        if len(set(column)) > 1:
            break
        common.append(column[0])
    folder = "".join(common).rstrip("/\\")
    if len(folder) < 2:
        return None
    shape = _POSIX_SHAPE.match(folder) or _WINDOWS_SHAPE.match(folder)
    if shape is None or (shape.group("ci") is None and shape.end() >= len(folder)):
        return None  # the home itself is no project
    return folder


def root_spans(text: str, roots: Sequence[Root]) -> Iterator[Span]:
    """The places in a leaf where a root stands: by its literal, as a slug, and homes and temp by shape.

    Spans may overlap: the first one given is the right one.
    """
    for root in roots:
        for start, end in _occurrences(text, root.literal):
            yield from _root_and_separators(text, start, end, root.kind, root.literal)
    for match in _shapes(text):
        start, end = match.span()
        if match.group("home"):
            kind: RootKind = "home"
        elif match.group("tmp"):
            kind = "tmp"
        else:
            continue
        if _starts_path(text, start):
            yield from _root_and_separators(text, start, end, kind, match.group())


@lru_cache(maxsize=1024)
def _spellings(literal: str) -> tuple[tuple[str, ...], str]:
    """How a root may be written, and its slug."""
    spellings: tuple[str, ...] = (literal,)
    if "\\" in literal:
        spellings += (literal.replace("\\", "\\\\"), literal.replace("\\", "/"))
    return spellings, re.sub(r"[^A-Za-z0-9]", "-", literal)


def _occurrences(text: str, literal: str) -> Iterator[tuple[int, int]]:
    spellings, slug = _spellings(literal)
    for spelling in spellings:
        start = text.find(spelling)
        while start >= 0:
            end = start + len(spelling)
            if _starts_path(text, start) and _ends_name(text, end):
                yield start, end
            start = text.find(spelling, end)
    start = text.find(slug)
    while start >= 0:
        end = start + len(slug)
        if _is_slug(text, start, end):
            yield start, end
        start = text.find(slug, end)


def _is_slug(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    if end - start <= _SHORT_SLUG:  # `-app` is a word too: only a whole name in a path is `/app`
        return before in ("/", "\\") and after in ("/", "\\", "")
    return not (before.isalnum() or before == "-" or after.isalnum() or after in {"-", "_"})


def _ends_name(text: str, end: int) -> bool:
    after = text[end : end + 2]
    if not after or not (after[0].isalnum() or after[0] in "._-@+"):
        return True
    # A full stop may end a sentence: "in /home/a/app."
    return after[0] == "." and (len(after) == 1 or not (after[1].isalnum() or after[1] in "._-"))


def _root_and_separators(text: str, start: int, end: int, kind: RootKind, literal: str) -> Iterator[Span]:
    yield Span(start, end, "RS105", kind, literal.replace("\\\\", "\\"))
    rest = _REST.match(text, end)
    if rest is None or "\\" not in rest.group():
        return
    for match in re.finditer(r"\\+", rest.group()):
        yield Span(end + match.start(), end + match.end(), "RS105", SEPARATOR, "\\")


_RANDOM_NAME = re.compile(
    r"tmp[._]?[A-Za-z0-9_]{6,}"
    r"|(?:[A-Za-z][A-Za-z_.-]*[-_.])?(?:(?=[a-f]*\d)[0-9a-f]{4,}|(?=[A-Za-z]*\d)[A-Za-z0-9]{6,})"
    r"|(?:[A-Za-z][A-Za-z_-]*[-_.])(?=[A-Za-z]*[a-z][A-Z])[A-Za-z0-9]{6,}"
)


def temp_name_spans(text: str, temp_roots: Iterable[Span]) -> Iterator[Span]:
    """Components below the temp folder that look random (`tmpab12cd`, `run-8f3a`)."""
    for span in temp_roots:
        rest = _REST.match(text, span.end)
        if rest is None:
            continue
        for match in islice(re.finditer(r"[^\\/]+", rest.group()), _MAX_NAMES):
            name = match.group().rstrip(_TRAILING)
            stem = name.split(".", 1)[0] if not name.startswith("tmp.") else name
            if stem and _RANDOM_NAME.fullmatch(stem):
                start = span.end + match.start()
                yield Span(start, start + len(stem), "RS106", "random", stem)


_ABSOLUTE = re.compile(r"""(?:/|[A-Za-z]:[\\/])(?:[^\s"'`<>|:*?,;()\[\]{}\\/]+[\\/]+)+""")


def folder_spans(text: str) -> Iterator[Span]:
    """Every absolute folder (`rewind_paths = all`); the last component of a path stays."""
    for match in _ABSOLUTE.finditer(text):
        if _starts_path(text, match.start()):
            folder = match.group().rstrip("/\\")
            yield Span(match.start(), match.start() + len(folder), "RS107", "folder", folder)
