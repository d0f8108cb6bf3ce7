"""The words that name a folder in a prompt (DESIGN §5, "Paths"; CLIENTS.md).

A cue is a tag (`<cwd>`), a member of JSON (`"cwd":`), a phrase of an agent, or a label at the start of a line
or sentence (`Working directory:`). In the middle of a sentence the same words may be anybody's: "why does
cwd=/a fail?" names no root.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from rewind_proxy.canonical.paths.edges import TRAILING
from rewind_proxy.canonical.paths.spellings import identity
from rewind_proxy.canonical.text import normalise_text

# Quick to look for; each cue of a project holds one.
_HINTS = (
    "irector",
    "IRECTOR",
    "orkspace",
    "older",
    "cwd",
    "CWD",
    "PWD",
    "pwd",
    "oot:",
    "oot*",
    "ath:",
    "ath*",
)
_LONGEST_PATH = 1024
_MOST_FOLDERS = 64
_BEFORE_LABEL = 160
# Bounded, so that a text made of words before paths costs no more than its length.
_MOST_LABELS = 1000

_MEMBERS = (
    "cwd|pwd|working_?dir(?:ectory)?|current_?working_?directory|"
    "workspace_?(?:root|folder|path|dir(?:ectory)?)|project_?(?:root|path|dir(?:ectory)?)|git_?root|repo_?root"
)
_TAG = re.compile(rf"<(?i:{_MEMBERS})>\s{{0,64}}([^<\n]{{1,{_LONGEST_PATH}}})\s{{0,64}}</")
_MEMBER = re.compile(
    rf"""[\\"']{{1,4}}(?i:{_MEMBERS})[\\"']{{1,4}}\s{{0,4}}:\s{{0,4}}[\\"']{{1,4}}([^"'\n]{{1,{_LONGEST_PATH}}})"""
)
_BLOCKS = (("<workspace_roots>", "</workspace_roots>"), ("<workspace_folders>", "</workspace_folders>"))
_BLOCK_ITEM = re.compile(rf"<(?:root|folder)>\s{{0,64}}([^<\n]{{1,{_LONGEST_PATH}}})")

# What stands before a label, from the start of its line or sentence on.
_OWNERS = (
    "the|a|your|my|our|its|this|user's|user’s|users|primary|current|currently|initial|default|session|shell|"
    "project|agent|absolute|path|export|opened|open|active|additional|other|main|of"
)
_LABELS = (
    r"work(?:ing|space)[ _-](?:root[ _-])?(?:dir(?:ector(?:y|ies))?|folders?|paths?|roots?)(?:[ _-]folder)?|"
    r"current[ _-](?:directory|dir|folder|workspace)|"
    r"(?:project|repository|repo|git|worktree)[ _-](?:root|directory|folder|path)(?:[ _-]folder)?|"
    r"git[ _-]repository[ _-]root|workspace|cwd|pwd"
)
# Phrases of agents that say nothing else: Gemini CLI and Qwen Code, VS Code, Zed, Claude Code.
_PHRASES = (
    r"working in the (?:following )?director(?:y|ies)|workspace with the following folders?|"
    r"the following root directories|primary working directory|additional working directories"
)
_PHRASE = re.compile(rf"(?i)(?:{_PHRASES})\Z")
_PATH_AHEAD = r"""(?:/|[A-Za-z]:[\\/]|\\\\)"""
_BULLET = r"[ \t]*(?:[-*•]|\d+\.)?[ \t]*"
_BEFORE_VALUE = re.compile(
    r"(?i)(?:irector(?:y|ies)|orkspace|olders?|cwd|pwd|oot|ath)(?P<end>)"
    r"[*_`\"'\])]{0,4}(?:[ ](?:is|are))?[ ]?(?P<colon>[:=])?[*_]{0,3}[ \t]{0,4}"
    rf"(?:(?=[\"'`(\[]{{0,3}}{_PATH_AHEAD})|(?P<list>\n{{1,2}}(?={_BULLET}[\"'`]?{_PATH_AHEAD})))"
)
_LABEL = re.compile(
    rf"(?im)(?:(?:{_PHRASES})"
    rf"|(?P<start>^|[.!?:;,)\]}}>|]\s|[(\[{{<>|\"*#])[ \t>#*_•-]{{0,12}}"
    rf"(?:(?:{_OWNERS})[ _-]){{0,6}}(?:{_LABELS}))\Z"
)
_ITEM = re.compile(rf"{_BULLET}([\"'`]?{_PATH_AHEAD}[^\n]{{0,{_LONGEST_PATH}}})(?:\n|\Z)")
_CLOSING = {'"': '"', "'": "'", "`": "`", "(": ")", "[": "]"}
_WORD = re.compile(r"""[^\s"'`<>|*?\[\]{}]+""")
# The line after it, when the label stands in a list of an agent's.
_FELLOW = re.compile(
    r"(?i)\n[ \t>*•-]{0,6}(?:is (?:a|this|directory) |platform|shell|os |operating |git |workspace |"
    r"additional |today|current |date|time|</env|home|user|available )"
)
_AFTER_PATH = re.compile(r" \((?:was|not) [^\n]*| +$")
_MOST_WORDS = 6
# Folders of the system: no project, and the same on every machine.
_SYSTEM = frozenset(
    "/bin /boot /dev /etc /home /lib /lib64 /media /mnt /opt /proc /run /sbin /sys /usr /usr/bin /usr/lib "
    "/usr/local /usr/local/bin /usr/share /var /var/lib /var/log /users /library /system /applications "
    "c: c:/windows c:/users".split()
)

# What stands before one of these folders is a home: agents and shells keep their own state there.
_HOME_FOLDER = re.compile(
    r"[\\/]\.(?:claude|codex|gemini|qwen|copilot|opencode|config|cache|local|npm|nvm|ssh|cargo|rustup|pyenv|"
    r"gnupg|kube|aws|bun|m2|vscode-server|cursor-server|bashrc|zshrc|profile|bash_profile|bash_history|zsh_history|"
    r"gitconfig|netrc|oh-my-zsh)(?=[\\/\s\"'`<>,;:)]|\Z)"
)
_TOKEN_START = re.compile(r"[\s\"'`<>|*?,;()=\[\]{}]")
_SPACED_HOME = re.compile(r"(?:[A-Za-z]:[\\/]{1,4}|/)(?:Users|home)[\\/]{1,4}[^\\/\"'`<>|*?:\n]{1,64}\Z")
_HOME_LABEL = re.compile(
    rf"(?m)(?:^|[\s\"';]|\b(?:export|set) )(?:HOME=|USERPROFILE=|(?:[Uu]ser )?[Hh]ome directory(?: is)?:? )"
    rf"[\"'`]?({_PATH_AHEAD}[^\s\"'`<>|*?]{{0,{_LONGEST_PATH}}})"
)
_TMP_LABEL = re.compile(
    rf"(?m)(?:^|[\s\"';])(?:TMPDIR=|TEMP=|TMP=)[\"'`]?({_PATH_AHEAD}[^\s\"'`<>|*?]{{0,{_LONGEST_PATH}}})"
)


def cwd_cues(text: str) -> Iterator[str]:
    """The folders that a text names as the project's or as roots beside it, in order of the kinds of cues."""
    if not any(hint in text for hint in _HINTS):
        return
    if "<" in text:
        for match in _TAG.finditer(text):
            yield from folders([match[1]])
        for first, last in _BLOCKS:
            start = text.find(first)
            if start >= 0:
                items = _BLOCK_ITEM.finditer(text, start, max(start, text.find(last, start)))
                yield from folders(item[1] for item in items)
    yield from _labelled(text)
    for match in _MEMBER.finditer(text):
        yield from folders([match[1]])


def home_cues(text: str) -> Iterator[str]:
    """The homes that a text names: by a label, and by what an agent or a shell keeps there."""
    if "HOME=" in text or "ome directory" in text or "USERPROFILE=" in text:
        yield from folders(match[1] for match in _HOME_LABEL.finditer(text))
    if "/." in text or "\\." in text:
        for match in _HOME_FOLDER.finditer(text):
            start = match.start()
            # A path token is short: 512 characters back keeps this linear on a text of separators.
            before = text[max(0, start - 512) : start]
            spaced = _SPACED_HOME.search(before[-96:])
            token = spaced.group() if spaced else _TOKEN_START.split(before)[-1]
            token = token.removeprefix("file://").lstrip("@")
            if re.match(r"/[^/]|[A-Za-z]:[\\/]", token) and "://" not in token:
                yield from folders([token])


def tmp_cues(text: str) -> Iterator[str]:
    """The temp folders that a text names by their variable."""
    if "TMPDIR=" in text or "TEMP=" in text or "TMP=" in text:
        yield from folders(match[1] for match in _TMP_LABEL.finditer(text))


def folders(found: Iterable[str]) -> Iterator[str]:
    """What was found as a root is compared: as texts are, without what ends a sentence or a path."""
    for each in found:
        folder = normalise_text(each.strip()).rstrip(TRAILING).rstrip("/\\")
        if (re.match(r"[A-Za-z]:", folder) and "\\\\" in folder) or folder.startswith("\\\\\\\\"):
            folder = folder.replace("\\\\", "\\")
        if len(folder) > 1 and re.match(_PATH_AHEAD, folder) and identity(folder).lower() not in _SYSTEM:
            yield folder


def _labelled(text: str) -> Iterator[str]:
    done = 0
    found = (ahead for place in _places(text) if (ahead := _BEFORE_VALUE.match(text, place)))
    for ahead in islice(found, _MOST_LABELS):
        place = ahead.start()
        if place < done:
            continue
        line_start = text.rfind("\n", max(0, place - _BEFORE_LABEL), place) + 1
        begin = max(done, line_start or place - _BEFORE_LABEL, 0)
        words = text[begin : ahead.start("end")]
        label = _LABEL.search(words)
        if label is None:
            continue
        done = ahead.end()
        if ahead["list"]:
            yield from folders(_list(text, done, bulleted=bool(ahead["colon"])))
        else:
            phrase = _PHRASE.search(words) is not None
            yield from folders(_value(text, done, phrase=phrase, listed=label["start"] == ""))


def _places(text: str) -> list[int]:
    places: list[int] = []
    for hint in _HINTS:
        start = text.find(hint)
        while start >= 0:
            places.append(start)
            start = text.find(hint, start + len(hint))
    places.sort()
    return places


def _list(text: str, start: int, *, bulleted: bool) -> Iterator[str]:
    """The paths of a list below its label; without a colon the one path below a heading."""
    for _ in range(_MOST_FOLDERS if bulleted else 1):
        item = _ITEM.match(text, start)
        if item is None:
            return
        first = item[1][0]
        yield item[1][1:].split(first, 1)[0] if first in _CLOSING else item[1]
        start = item.end()


def _value(text: str, start: int, *, phrase: bool, listed: bool) -> Iterator[str]:
    """The path after a label, or the paths, which may have blanks in their names."""
    closing = ""
    while text[start] in _CLOSING:
        closing = _CLOSING[text[start]]
        start += 1
    end = text.find("\n", start, start + _LONGEST_PATH)
    line = text[start : end if end >= 0 else start + _LONGEST_PATH]
    if closing and closing in line:
        yield line.split(closing, 1)[0]
        return
    several = line.split(", ")
    if len(several) > 1 and all(re.match(_PATH_AHEAD, each) for each in several):
        yield from several
        return
    whole = _AFTER_PATH.sub("", line)
    word = _WORD.match(whole)
    if word is None:
        return
    if phrase or (listed and end >= 0 and _FELLOW.match(text, end)):
        yield whole
        return
    yield _supported(text, whole, word.group())


def _supported(text: str, line: str, word: str) -> str:
    """The longest start of a line that stands elsewhere with a file below it; else its first word."""
    if len(word) == len(line):
        return line
    words = line.split(" ")
    for count in range(min(len(words), _MOST_WORDS), 1, -1):
        candidate = " ".join(words[:count]).rstrip(TRAILING)
        if len(candidate) > len(word) and (f"{candidate}/" in text or f"{candidate}\\" in text):
            return candidate
    return word
