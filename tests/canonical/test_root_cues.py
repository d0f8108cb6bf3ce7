"""Where an agent's words name the project, and where the same words name nothing (DESIGN §5, "Paths").

The words are those of the agents in CLIENTS.md and of editors; each names a project wherever it lies.
"""

from __future__ import annotations

import pytest

from rewind_proxy.canonical.model import MatchSettings
from rewind_proxy.canonical.paths.roots import discover, find_roots
from rewind_proxy.canonical.pointer import ROOT
from rewind_proxy.canonical.scrub import Numbering, Scrubber


def scrubbed(*leaves: str) -> list[str]:
    """The leaves of one request with their placeholders, as the normalised fingerprint sees them."""
    roots = find_roots([discover(leaf) for leaf in leaves])
    numbering, scrubber = Numbering(), Scrubber(MatchSettings())
    return [numbering.render(scrubber.leaf(leaf, "text", "user", roots), ROOT) for leaf in leaves]


CUES = [
    "<cwd>{}</cwd>",
    "<cwd>{}/</cwd>",
    "<working_directory>{}</working_directory>",
    "<workspace_roots><root>{}</root></workspace_roots>",
    "Working directory: {}",
    "Working directory is {}.",
    "**Working directory:** `{}`",
    "# Working Directory\n{}\nmore",
    "[Current working directory: {}]",
    "# Current Working Directory ({}) Files",
    "# Current Workspace Directory ({}) Files",
    "You are a bot. Working directory: {}. Be kind.",
    " - Primary working directory: {}\n - Is a git repository: true",
    "* Current working directory: {}\n* Git repository root: {}",
    "<env>\n  Working directory: {}\n  Is directory a git repo: yes\n</env>",
    "<env>\n  Workspace root folder: {}\n</env>",
    "I'm currently working in the directory: {}\nHere is the folder structure:",
    "I'm currently working in the following directories:\n  - {}\nHere",
    "- **Workspace Directories:**\n  - {}\n- **Directory Structure:**",
    "I am working in a workspace with the following folders:\n- {} \nI am",
    "the current project, which contains the following root directories:\n\n- `{}`\n",
    "The absolute path of the user's workspace is {}",
    "Workspace Path: {}",
    "Workspace Folder: {}",
    "PWD={}\nSHELL=/bin/bash",
    "cwd: {}",
    '{{"cwd": "{}"}}',
    '{{"workingDirectory":"{}"}}',
    '{{\\"workspace_root\\":\\"{}\\"}}',
]


@pytest.mark.parametrize("cue", CUES)
def test_a_cue_names_the_project(cue: str) -> None:
    """Where an agent says that it works is the project, wherever that is."""
    for root in ("/srv/ann/app", "/opt/7/work", "/q"):
        leaf, file = scrubbed(cue.format(*(root,) * 2), f"read {root}/src/x.py")
        assert file == "read ⟨cwd⟩/src/x.py"
        assert "⟨cwd⟩" in leaf
        assert root not in leaf


@pytest.mark.parametrize(
    "text",
    [
        "why does cwd=/srv/one fail?",
        "why is the working directory: /srv/one?",
        "compose has working directory: /srv/one",
        "Working directory: /etc",
        "parse <root>/srv/one</root>",
        "the directory /srv/one and the folder /srv/two",
        "see /workspace\n/srv/one/x",
    ],
)
def test_words_of_anybody_name_no_project(text: str) -> None:
    """In the middle of a sentence, of the system's folders or of other XML a cue says nothing."""
    assert scrubbed(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "# Environment\n - Primary working directory: {0}\n - Is a git repository: true",
        "I'm currently working in the directory: {0}\nHere is",
        'Current working directory: "{0}"\n\nopen',
        "<env>\n  Working directory: {0}\n  Is directory a git repo: yes",
        "Working directory: {0}\nfirst read {0}/README.md",
    ],
)
@pytest.mark.parametrize("root", ["/Users/Jane Doe/My App", "/srv/my app", "D:\\My Work\\app"])
def test_blanks_in_the_name_of_a_project(text: str, root: str) -> None:
    """A path with blanks is read whole where the line can be nothing else."""
    separator = "\\" if "\\" in root else "/"
    assert scrubbed(text.format(root), f"read {root}{separator}x.py")[1] == "read ⟨cwd⟩/x.py"


def test_words_after_a_path_count() -> None:
    """What a user asks on the line of the path is no part of the path."""
    seen = scrubbed("Working directory: /srv/a/app please remove it")
    assert seen == ["Working directory: ⟨cwd⟩ please remove it"]


def test_several_roots() -> None:
    """Further folders are roots too, in a list or on one line; of a folder and one above it both are."""
    for listed in (": {0}/lib, {0}/z", ":\n  - {0}/lib\n  - {0}/z"):
        text = " - Primary working directory: {0}/app\n - Additional working directories" + listed
        seen = [scrubbed(text.format(top), f"{top}/lib/x {top}/z/y")[1] for top in ("/srv/a", "/opt/q/b")]
        assert seen == ["⟨cwd:2⟩/x ⟨cwd:3⟩/y"] * 2
    above = "* Current working directory: {0}/app\n* Git repository root: {0}\n"
    seen = [scrubbed(above.format(top), f"{top}/app/x {top}/y")[1] for top in ("/srv/a", "/opt/q/b")]
    assert seen == ["⟨cwd⟩/x ⟨cwd:2⟩/y"] * 2


def test_cues_of_home_and_temp() -> None:
    """A home and a temp folder anywhere are known by their variables."""
    assert scrubbed("HOME=/srv/ann\n/srv/ann/x") == ["HOME=⟨home⟩\n⟨home⟩/x"]
    assert scrubbed("TMPDIR=/scratch/t\n/scratch/t/tmp.Xa8dQ2k9Lm/o") == ["TMPDIR=⟨tmp⟩\n⟨tmp⟩/⟨random:1⟩/o"]
