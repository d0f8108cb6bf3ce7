"""Where a project, a home and the temp folder are, as an agent's own words tell (DESIGN §5, "Paths").

`discover` reads one text leaf; `find_roots` puts together what the leaves of a request told; `root_spans`
finds the roots again in a leaf. Roots are matched as whole path prefixes in every spelling
(spellings.py) and by their shape (shapes.py); `temp_name_spans` is temp_names.py's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from rewind_proxy.canonical.paths.cues import cwd_cues, folders, home_cues, tmp_cues
from rewind_proxy.canonical.paths.edges import REST, starts_path
from rewind_proxy.canonical.paths.shapes import ShapeKind, shape_of, shapes
from rewind_proxy.canonical.paths.spellings import identity, occurrences
from rewind_proxy.canonical.paths.temp_names import temp_name_spans
from rewind_proxy.canonical.preset import Cue, Cues
from rewind_proxy.canonical.spans import SEPARATOR, Span

__all__ = ["Found", "Root", "discover", "find_roots", "folder_spans", "root_spans", "temp_name_spans"]

RootKind = Literal["cwd", "home", "tmp", "root"]

_KIND_OF_SHAPE: dict[ShapeKind, RootKind] = {"ci": "cwd", "tmp": "tmp", "home": "home", "agent": "root"}
"""What is a root by its shape alone; `work` is one only where several paths share it."""
_MAX_PATHS = 64
_MAX_FOLDERS = 64
_MAX_HOMES = 8


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
    shaped: tuple[str, ...] = ()
    """Homes that have a path below them."""
    tmp: tuple[str, ...] = ()


NOTHING = Found()


def discover(text: str, cues: Cues | None = None) -> Found:
    """The folders and paths that one text leaf names; `cues` are those of the agent that wrote it."""
    cwd, home, tmp = (
        tuple(islice(told, _MAX_FOLDERS)) for told in (cwd_cues(text), home_cues(text), tmp_cues(text))
    )
    paths, shaped = _shaped_paths(text)
    other: tuple[str, ...] = ()
    if cues:
        cwd = (*_cued(text, cues.cwd), *cwd)
        home = (*_cued(text, cues.home), *home)
        other = tuple(_cued(text, cues.root))
    if cwd or home or paths or other or shaped or tmp:
        return Found(cwd, home, paths, other, shaped, tmp)
    return NOTHING


def _cued(text: str, cues: Iterable[Cue]) -> Iterator[str]:
    for cue in cues:
        yield from folders(match.group(1) for match in cue.matches(text))


def _shaped_paths(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths below a home or CI root, and the homes."""
    paths: list[str] = []
    homes: dict[str, None] = {}
    for shape in islice((shape for shape in shapes(text) if shape.kind != "tmp"), _MAX_PATHS):
        rest = REST.match(text, shape.end)
        end = rest.end() if rest else shape.end
        paths.extend(folders([text[shape.start : end]]))
        if shape.kind == "home" and end > shape.end and len(homes) < _MAX_HOMES:
            homes |= dict.fromkeys(folders([text[shape.start : shape.end]]))
    return tuple(paths), tuple(homes)


def find_roots(found: Sequence[Found], extra: Iterable[str] = ()) -> tuple[Root, ...]:
    """The roots of a request from what its leaves told, in order; longest literal first.

    The first `cwd` cue wins; without one it is the deepest common folder of the paths in the first leaves
    that hold any, two paths at least, when that lies below the home or CI root itself.
    """
    # Of the first leaf that has a cue alone: a later "Working directory: /etc" moves nothing.
    cwd: Sequence[str] = next((leaf.cwd for leaf in found if leaf.cwd), ())
    if not cwd:
        common = _common_folder(found)
        cwd = [common] if common else []
    roots: dict[str, Root] = {}

    def add(kind: RootKind, folder: str, *, below_others: bool) -> None:
        same = identity(folder)
        if same in roots or (not below_others and any(same.startswith(f"{other}/") for other in roots)):
            return
        roots[same] = Root(kind, folder)

    for folder in extra:
        add("root", folder, below_others=True)
    for folder in cwd:
        add("cwd", folder, below_others=False)
    # After the project's: agents keep work trees below a folder of theirs.
    for leaf in found:
        for folder in leaf.other:
            add("root", folder, below_others=True)
    for leaf in found:
        for folder in leaf.home:
            add("home", folder, below_others=False)
    for leaf in found:
        for folder in leaf.tmp:
            add("tmp", folder, below_others=False)
    for leaf in found:
        for folder in leaf.shaped:
            add("home", folder, below_others=False)
    return tuple(sorted(roots.values(), key=lambda root: -len(root.literal)))


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
    shape = shape_of(folder)
    if shape is None or (shape.kind not in ("ci", "work") and shape.end >= len(folder)):
        return None  # the home itself is no project
    return folder


def root_spans(text: str, roots: Sequence[Root]) -> Iterator[Span]:
    """The places in a leaf where a root stands: by its literal, as a slug, and homes and temp by shape.

    Spans may overlap: the first one given is the right one.
    """
    shaped = [shape for shape in shapes(text) if shape.kind in _KIND_OF_SHAPE]
    below_home = {shape.start: shape.end for shape in shaped if shape.kind != "home"}
    told: set[int] = set()
    for root in roots:
        for start, end in occurrences(text, root.literal):
            if root.kind == "home" and below_home.get(start, 0) > end:
                continue  # the temp folder of Windows, the folders of CI machines and agents
            told.add(start)
            yield from _root_and_separators(text, start, end, root)
    known: dict[str, Root] | None = None
    for shape in shaped:
        kind = _KIND_OF_SHAPE[shape.kind]
        if shape.start in told or (kind == "home" and text[shape.end : shape.end + 1] not in ("/", "\\")):
            continue  # `/home/index` may be a route; a home that has files is known by them
        folder = text[shape.start : shape.end]
        if known is None:
            known = _by_identity(tuple(roots))
        root_there = known.get(identity(folder)) or Root(kind, _as_a_value(folder))
        yield from _root_and_separators(text, shape.start, shape.end, root_there)


@lru_cache(maxsize=256)
def _by_identity(roots: tuple[Root, ...]) -> dict[str, Root]:
    return {identity(root.literal): root for root in roots}


def _as_a_value(folder: str) -> str:
    """One text for the spellings of a folder that no cue has named."""
    if folder.startswith("/private/"):
        return folder.removeprefix("/private")
    folder = folder.lstrip("/") if folder[2:3] == ":" else folder
    if folder[1:2] == ":":
        return folder[0].upper() + re.sub(r"[\\/]+", r"\\", folder[1:])
    return folder


def _root_and_separators(text: str, start: int, end: int, root: Root) -> Iterator[Span]:
    # An agent that ends the path in its tag with a slash says the same as one that does not.
    last = end + 1 if text[end : end + 1] in ("/", "\\") and text.startswith("</", end + 1) else end
    yield Span(start, last, "RS105", root.kind, root.literal)
    written = text[start:end]
    if "\\" not in written and ":" not in written:
        return  # what a backslash escapes in a POSIX path is no separator
    rest = REST.match(text, last)
    if rest is None or "\\" not in rest.group():
        return
    for match in _separators_of(written).finditer(rest.group()):
        yield Span(last + match.start(), last + match.end(), "RS105", SEPARATOR, "\\")


_ONE = re.compile(r"\\+/?")
_TWO = re.compile(r"\\{2,}/?")
_ESCAPED_SLASH = re.compile(r"\\/")


def _separators_of(written: str) -> re.Pattern[str]:
    """What separates names below a root that is written so: below `C:\\\\a`, `\\n` is an escape."""
    if "\\/" in written:
        return _ESCAPED_SLASH
    return _TWO if re.search(r"\w\\\\\w|:\\\\", written) else _ONE


_ABSOLUTE = re.compile(r"""(?:/|[A-Za-z]:[\\/])(?:[^\s"'`<>|:*?,;()\[\]{}\\/]+[\\/]+)+""")


def folder_spans(text: str) -> Iterator[Span]:
    """Every absolute folder (`rewind_paths = all`); the last component of a path stays."""
    for match in _ABSOLUTE.finditer(text):
        if starts_path(text, match.start()):
            folder = match.group().rstrip("/\\")
            yield Span(match.start(), match.start() + len(folder), "RS107", "folder", folder)
