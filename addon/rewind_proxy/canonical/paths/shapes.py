"""Homes, CI folders and temp folders that are told by their shape alone, as data (DESIGN §5, "Paths").

A pattern of a POSIX shape is what follows the first slash. Of a CI folder the name of the project is a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from rewind_proxy.canonical.paths.edges import starts_path

ShapeKind = Literal["ci", "work", "tmp", "home", "agent"]

# A name does not end in the full stop of a sentence.
_NAME = r"[\w.-]+(?<!\.)"
# A number is the id of a route (`/Users/1/posts`).
_USER = r"(?!\d+(?![\w.@+-]))(?!(?:Shared|Public|Default)\b)[\w.@+-]+(?<!\.)"
# A full name has its words in capitals and a folder below it, so that it is no prose.
_FULL_NAME = r"[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){1,3}(?=/)"
_ANY_USER = rf"(?:{_FULL_NAME}|{_USER})"
_AGENT = r"\.(?:gemini|qwen)/tmp"

_POSIX: tuple[tuple[ShapeKind, str], ...] = (
    # GitHub Actions, in a container too; Azure Pipelines; CircleCI; Travis; GitLab's shell; Jenkins.
    ("ci", rf"home/runner/work/{_NAME}/{_NAME}"),
    ("ci", rf"Users/runner/work/{_NAME}/{_NAME}"),
    ("ci", rf"__w/{_NAME}/{_NAME}"),
    ("ci", r"github/workspace"),
    ("ci", r"home/vsts/work/\d+/s"),
    ("ci", r"agent/_work/\d+/s"),
    ("ci", r"azp/_work/\d+/s"),
    ("ci", r"home/circleci/project"),
    ("ci", r"Users/distiller/project"),
    ("ci", rf"home/travis/build/{_NAME}/{_NAME}"),
    ("ci", rf"Users/travis/build/{_NAME}/{_NAME}"),
    ("ci", rf"home/gitlab-runner/builds/{_NAME}/\d+/{_NAME}/{_NAME}"),
    ("ci", rf"home/jenkins/(?:agent/)?workspace/{_NAME}"),
    ("ci", rf"var/(?:lib/jenkins|jenkins_home)/workspace/{_NAME}"),
    # Bitbucket, Buildkite, TeamCity, Drone, Bitrise, Netlify, Vercel.
    ("ci", r"opt/atlassian/pipelines/agent/build"),
    ("ci", rf"var/lib/buildkite-agent/builds/{_NAME}/{_NAME}/{_NAME}"),
    ("ci", rf"opt/(?:teamcity/)?build[aA]gent/work/{_NAME}"),
    ("ci", r"drone/src"),
    ("ci", r"bitrise/src"),
    ("ci", r"opt/build/repo"),
    ("ci", r"vercel/path0"),
    # Routes may look like these: alone they are no root, what several paths share is one.
    ("work", rf"builds/{_NAME}/{_NAME}"),
    ("work", rf"workspaces?(?=/)(?:/{_NAME})?"),
    ("tmp", r"tmp"),
    ("tmp", r"var/tmp"),
    ("tmp", r"private/tmp"),
    ("tmp", r"private/var/tmp"),
    ("tmp", r"var/folders/[\w+]+/[\w+]+/T"),
    ("tmp", r"private/var/folders/[\w+]+/[\w+]+/T"),
    ("tmp", r"dev/shm"),
    ("tmp", r"run/user/\d+"),
    ("tmp", r"data/local/tmp"),
    # What Gemini CLI and Qwen Code keep for a project, by its name or a hash of its path.
    ("agent", rf"home/{_USER}/{_AGENT}/{_NAME}"),
    ("agent", rf"Users/{_ANY_USER}/{_AGENT}/{_NAME}"),
    ("agent", rf"root/{_AGENT}/{_NAME}"),
    ("home", rf"home/{_USER}"),
    ("home", rf"var/home/{_USER}"),
    ("home", rf"export/home/{_USER}"),
    ("home", rf"usr/home/{_USER}"),
    ("tmp", rf"Users/{_ANY_USER}/AppData/Local/Temp"),
    ("home", rf"Users/{_ANY_USER}"),
    ("home", r"root"),
    ("home", r"var/root"),
)
# Claude Code has a folder below temp for each user, by number.
_OF_USER = r"(?:/claude-\d+(?=/))?"
_WIN_NAME = r"""[^\\/\s"'`<>|:*?]+"""
_WIN_USER = rf"Users~(?:[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){{1,3}}(?=[\\/])|(?!(?:Public|Default)\b){_WIN_NAME})"
# `~` stands for a separator, of whatever kind.
_WINDOWS: tuple[tuple[ShapeKind, str], ...] = (
    ("tmp", rf"{_WIN_USER}~AppData~Local~Temp"),
    ("tmp", r"Windows~(?:Temp|TEMP|temp)"),
    ("tmp", r"Temp"),
    ("tmp", r"TEMP"),
    ("tmp", r"temp"),
    ("tmp", r"tmp"),
    ("ci", r"agent~_work~\d+~s"),
    ("ci", rf"Jenkins~workspace~{_WIN_NAME}"),
    ("ci", rf"jenkins~workspace~{_WIN_NAME}"),
    ("ci", rf"GitLab-Runner~builds~{_WIN_NAME}~\d+~{_WIN_NAME}~{_WIN_NAME}"),
    ("ci", rf"BuildAgent~work~{_WIN_NAME}"),
    ("ci", rf"buildAgent~work~{_WIN_NAME}"),
    ("ci", r"Users~circleci~project"),
    ("ci", r"a~\d+~s"),
    ("work", rf"a~{_NAME}~{_NAME}"),
    ("work", rf"projects~{_NAME}"),
    ("agent", rf"{_WIN_USER}~\.(?:gemini|qwen)~tmp~{_NAME}"),
    ("home", _WIN_USER),
)
_SEPARATOR = r"(?:\\{1,4}|/)"


class Shape(NamedTuple):
    """`text[start:end]` may be a folder of this kind."""

    start: int
    end: int
    kind: ShapeKind


def _by_first_letter(shapes: tuple[tuple[ShapeKind, str], ...]) -> tuple[str, tuple[ShapeKind, ...]]:
    """One pattern with a group for each shape, most of which one letter rules out; the kinds by group.

    Of two shapes with one letter the first goes first.
    """
    by_letter: dict[str, list[tuple[ShapeKind, str]]] = {}
    for kind, pattern in shapes:
        by_letter.setdefault(pattern[0], []).append((kind, pattern[1:]))
    kinds = tuple(kind for each in by_letter.values() for kind, _ in each)
    alternatives = (
        f"{letter}(?:{'|'.join(f'({rest})' for _, rest in each)})" for letter, each in by_letter.items()
    )
    return "|".join(alternatives), kinds


_POSIX_PATTERN, _POSIX_KINDS = _by_first_letter(
    tuple((kind, f"{pattern}{_OF_USER}" if kind == "tmp" else pattern) for kind, pattern in _POSIX)
)
_POSIX_SHAPE = re.compile(rf"/(?:{_POSIX_PATTERN})(?![\w@+-])")
_WINDOWS_PATTERN, _WINDOWS_KINDS = _by_first_letter(
    tuple((kind, pattern.replace("~", _SEPARATOR)) for kind, pattern in _WINDOWS)
)
_WINDOWS_SHAPE = re.compile(rf":{_SEPARATOR}(?:{_WINDOWS_PATTERN})(?![\w@+-])")
# Where WSL, Cygwin and Git Bash have the drives of Windows.
_MOUNT = re.compile(r"/(?:mnt/|cygdrive/)?[a-z]\Z")
# Behind an expression that ends here stands no path of its own: `${base}/home/about`.
_AFTER_EXPRESSION = "})]"


def shapes(text: str) -> Iterator[Shape]:
    """Where a folder of a known shape stands."""
    if "/" in text:
        for match in _POSIX_SHAPE.finditer(text):
            start = match.start()
            if start and text[start - 1] in _AFTER_EXPRESSION:
                continue
            if not starts_path(text, start):
                mount = _MOUNT.search(text[max(0, start - 16) : start]) if text[start + 1] == "U" else None
                if mount is None or not starts_path(text, start - len(mount.group())):
                    continue
                start -= len(mount.group())
            yield Shape(start, match.end(), _POSIX_KINDS[(match.lastindex or 1) - 1])
    if ":\\" in text or ":/" in text:
        for match in _WINDOWS_SHAPE.finditer(text):
            drive = match.start() - 1
            if drive >= 0 and text[drive].isascii() and text[drive].isalpha():
                begin = start_of_drive(text, drive)
                if begin is not None:
                    yield Shape(begin, match.end(), _WINDOWS_KINDS[(match.lastindex or 1) - 1])


_EXTENDED = ("\\\\?\\", "\\\\\\\\?\\\\")
"""What Windows puts before a path that may be long, and the same in JSON."""


def start_of_drive(text: str, drive: int) -> int | None:
    """Where the path with a drive's letter at `drive` starts: in a URL with the slash before it."""
    if starts_path(text, drive):
        return drive
    if text[drive - 1] == "/" and starts_path(text, drive - 1):
        return drive - 1
    if text.endswith(_EXTENDED, 0, drive):
        return drive
    return None


def shape_of(folder: str) -> Shape | None:
    """The shape that a folder lies in, or is."""
    first = next(shapes(f"{folder}/"), None)
    return first if first and first.start == 0 else None
