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

from rewind_proxy.canonical.answer import CanonicalAnswer
from rewind_proxy.canonical.redact import Redactor
from rewind_proxy.cli.look import SHORT_ID
from rewind_proxy.cli.opening import Desk, StoreOption, open_desk, settings_for
from rewind_proxy.cli.output import console, print_error, safe_line
from rewind_proxy.cli.review_screen import pending_facts
from rewind_proxy.errors import RewindError, StoreError
from rewind_proxy.matching.answer_redaction import answer_form
from rewind_proxy.matching.reviewing import Review, must_be_by_hand
from rewind_proxy.matching.supplied import read_answer, written
from rewind_proxy.porting import folder as folders
from rewind_proxy.porting.exporting import Exporter
from rewind_proxy.store import CassetteRecord, PendingRecord
from rewind_proxy.wire.forms import parsed

_STDIN = "-"


def answer(
    name: Annotated[
        str,
        typer.Argument(
            metavar="PENDING",
            help="Id of a pending request, its step, or `last`; or of an answer by hand, to change it.",
        ),
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

    The editor opens with the answer of the best candidate, where there is one. An answer that was supplied
    before can be changed: name its recording.
    """
    if (file is None) == (not edit):
        raise typer.BadParameter("give a FILE, or - for standard input, or --edit")
    with open_desk(settings_for(store), write=True) as desk:
        asked = _asked(desk, name)
        if file is None:
            edit_and_store(desk, asked)
            return
        place = "standard input" if file == _STDIN else file
        store_answer(desk, asked, read_answer(_read(file), place, as_text=as_text))


def _asked(desk: Desk, name: str) -> PendingRecord | CassetteRecord:
    """What is to be answered: a pending request, or one that was answered by hand."""
    try:
        return desk.log.pending.find(name)
    except StoreError as error:
        try:
            cassette = desk.store.cassette(name)
        except StoreError:
            raise error from None
    must_be_by_hand(cassette)
    return cassette


def store_answer(desk: Desk, asked: PendingRecord | CassetteRecord, supplied: CanonicalAnswer) -> None:
    """Store an answer, and say what comes of it. Raises `RewindError`."""
    review = Review(desk.store, desk.log, desk.reader, redact_answers=desk.settings.redact_answers)
    if isinstance(asked, PendingRecord):
        stored = review.answer(asked, supplied, time.time())
    else:
        stored = review.correct(asked, supplied, time.time())
    if desk.settings.cassettes:
        _into_folder(desk, desk.settings.cassettes, asked, stored.cassette)
    out = console()
    line = Text("answered: ", style="green")
    line.append(f"{asked.id[:SHORT_ID]} by {stored.cassette.id[:SHORT_ID]} (by hand)", style="default")
    out.print(line)
    for note in stored.notes:
        out.print(Text(f"note: {safe_line(note)}", style="yellow"))
    short = stored.cassette.id[:SHORT_ID]
    out.print(Text(f"see it: rewind show {short}    change it: rewind answer {short} --edit", style="dim"))


def _into_folder(
    desk: Desk, folder: Path, asked: PendingRecord | CassetteRecord, made: CassetteRecord
) -> None:
    """Put an answer into the folder that recordings come from, in place of the one that it corrects."""
    answers = Redactor(desk.reader.redactor.rules) if desk.settings.redact_answers else None
    exporter = Exporter(desk.store, desk.log, desk.reader, answers)
    folders.write(folder, exporter.export([made]), whole=False)
    if isinstance(asked, CassetteRecord) and asked.id != made.id:
        folders.remove(folder, [asked])


def edit_and_store(desk: Desk, asked: PendingRecord | CassetteRecord) -> None:
    """Have an answer written in an editor, and store it. Raises `RewindError`."""
    if isinstance(asked, PendingRecord):
        console().print(pending_facts(asked))
    before = written(_draft(desk, asked) or CanonicalAnswer())
    with tempfile.TemporaryDirectory(prefix="rewind-answer-") as folder:
        file = Path(folder) / f"answer-{asked.id[:SHORT_ID]}.json"
        file.write_text(before, encoding="utf-8")
        while True:
            _edit(file)
            try:
                content = _read(str(file))
                supplied = read_answer(content, "the answer", as_object=True) if content.strip() else None
                break
            except RewindError as error:
                print_error(str(error))
                if not (sys.stdin.isatty() and typer.confirm("Edit it again?", default=True)):
                    raise typer.Exit(1) from None
    if supplied is None:
        raise RewindError("the answer was left empty: nothing is stored")
    store_answer(desk, asked, supplied)


def _draft(desk: Desk, asked: PendingRecord | CassetteRecord) -> CanonicalAnswer | None:
    """What the editor opens with: the answer that there is, or that of the best candidate."""
    if isinstance(asked, CassetteRecord):
        return _recorded(desk, asked)
    for candidate in desk.log.pending.candidates(asked):
        found = () if candidate.rejected else desk.store.recordings_of(candidate.cassette)
        for cassette in found[-1:]:
            return _recorded(desk, cassette)
    return None


def _recorded(desk: Desk, cassette: CassetteRecord) -> CanonicalAnswer | None:
    if cassette.request.operation != "generate":
        return None
    form = answer_form(cassette.answer.content_type, cassette.request.form)
    return parsed(desk.store.answer(cassette).body, cassette.request.wire, form)


def _edit(file: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(editor)
    except ValueError as error:
        raise RewindError(f"EDITOR or VISUAL is no command ({error}): {editor!r}") from None
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
        return content.decode("utf-8-sig")
    except OSError as error:
        raise RewindError(f"{file} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise RewindError(f"{file} is not UTF-8 (byte {error.start})") from error
