"""`rewind answer`: supply the answer to a pending request, from a file or in an editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rewind_proxy.canonical.answer import CanonicalAnswer, Choice
from rewind_proxy.cli.look import SHORT_ID
from rewind_proxy.cli.opening import Desk, StoreOption, open_desk, settings_for
from rewind_proxy.cli.output import console, print_error, safe_line
from rewind_proxy.cli.review_screen import pending_facts
from rewind_proxy.errors import RewindError
from rewind_proxy.matching.reviewing import Review
from rewind_proxy.matching.supplied import read_answer, written
from rewind_proxy.store import CassetteRecord, PendingRecord
from rewind_proxy.wire.forms import FORMS

_STDIN = "-"


def answer(
    name: Annotated[
        str, typer.Argument(metavar="PENDING", help="Id of a pending request, its first digits, or `last`.")
    ],
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|-]", help='The answer: text, or JSON as {"text", "tool_calls", "finish"}.'
        ),
    ] = None,
    edit: Annotated[bool, typer.Option("--edit", "-e", help="Write it in $EDITOR.")] = False,
    as_text: Annotated[
        bool, typer.Option("--text", help="The file is text, whatever it looks like.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Supply the answer to a pending request: it is stored as if a model had said it, marked as by hand.

    The editor opens with the answer of the best candidate, where there is one.
    """
    if (file is None) == (not edit):
        raise typer.BadParameter("give a FILE, or - for standard input, or --edit")
    with open_desk(settings_for(store), write=True) as desk:
        pending = desk.log.pending.find(name)
        if file is None:
            edit_and_store(desk, pending)
            return
        content = _read(file)
        store_answer(
            desk, pending, read_answer(content, "standard input" if file == _STDIN else file, as_text=as_text)
        )


def store_answer(desk: Desk, pending: PendingRecord, supplied: CanonicalAnswer) -> None:
    """Store an answer to a pending request, and say what comes of it. Raises `RewindError`."""
    review = Review(desk.store, desk.log, desk.reader, redact_answers=desk.settings.redact_answers)
    stored = review.answer(pending, supplied, time.time())
    out = console()
    line = Text("answered: ", style="green")
    line.append(f"{pending.id[:SHORT_ID]} by {stored.cassette.id[:SHORT_ID]} (by hand)", style="default")
    out.print(line)
    for note in stored.notes:
        out.print(Text(f"note: {safe_line(note)}", style="yellow"))
    out.print(Text(f"see it: rewind show {stored.cassette.id[:SHORT_ID]}", style="dim"))


def edit_and_store(desk: Desk, pending: PendingRecord) -> None:
    """Have an answer written in an editor, and store it. Raises `RewindError`."""
    console().print(pending_facts(pending))
    before = written(_draft(desk, pending))
    with tempfile.TemporaryDirectory(prefix="rewind-answer-") as folder:
        file = Path(folder) / f"answer-{pending.id[:SHORT_ID]}.json"
        file.write_text(before, encoding="utf-8")
        while True:
            _edit(file)
            content = file.read_text(encoding="utf-8")
            if not content.strip():
                raise RewindError("the answer was left empty: nothing is stored")
            try:
                supplied = read_answer(content, "the answer")
                break
            except RewindError as error:
                print_error(str(error))
                if not (sys.stdin.isatty() and typer.confirm("Edit it again?", default=True)):
                    raise typer.Exit(1) from None
    store_answer(desk, pending, supplied)


def _draft(desk: Desk, pending: PendingRecord) -> CanonicalAnswer:
    """What the editor opens with: the answer of the best candidate, or an empty one."""
    for candidate in desk.log.pending.candidates(pending):
        for cassette in desk.store.recordings_of(candidate.cassette)[-1:]:
            found = _recorded(desk, cassette)
            if found is not None and not candidate.rejected:
                return found
    return CanonicalAnswer(choices=(Choice(),))


def _recorded(desk: Desk, cassette: CassetteRecord) -> CanonicalAnswer | None:
    forms = FORMS.get(cassette.request.wire)
    if forms is None or cassette.request.operation != "generate":
        return None
    return forms.parse(cassette.request.form, desk.store.answer(cassette).body)


def _edit(file: Path) -> None:
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not words:
        words = ["notepad"] if sys.platform == "win32" else ["vi"]
    try:
        status = subprocess.run([*words, file], check=False).returncode  # noqa: S603  # the user's own editor
    except OSError as error:
        raise RewindError(
            f"the editor {words[0]!r} cannot be started ({error.strerror}): set EDITOR"
        ) from error
    if status:
        raise RewindError(f"the editor ended with {status}: nothing is stored")


def _read(file: str) -> str:
    try:
        content = sys.stdin.buffer.read() if file == _STDIN else Path(file).read_bytes()
        return content.decode()
    except OSError as error:
        raise RewindError(f"{file} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise RewindError(f"{file} is not UTF-8 (byte {error.start})") from error
