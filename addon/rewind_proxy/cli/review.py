"""The review flow: `pending`, `review`, `approve`, `reject`, `answer` (its own file), `aliases`.

A request that replay refused is pending, with the recordings that are near to it as candidates. A person
approves one, or supplies an answer; the same request replays from then on.

JSON (`--json`), records as in store/records.py:

    pending   [pending + {"candidates": [{"cassette", "score", "rejected"}, …]}, …]   newest first
    review    pending + {"canonical", "candidates": [{"cassette", "score", "rejected", "difference",
              "differences", "answer"}, …], "nearest": the same or null}
    aliases   [alias + {"preview"}, …]   newest first
"""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer
from rich.text import Text

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.cli.answer import answer, edit_and_store
from rewind_proxy.cli.look import SHORT_ID
from rewind_proxy.cli.opening import Desk, JsonOption, StoreOption, open_desk, settings_for
from rewind_proxy.cli.output import Column, console, listing, print_error, print_json, safe_line, when
from rewind_proxy.cli.review_screen import (
    Pair,
    asked_of,
    lines,
    nearest,
    offered,
    pair,
    pending_facts,
    score_style,
    title,
)
from rewind_proxy.matching.reviewing import Review, ReviewError, best
from rewind_proxy.settings import Settings
from rewind_proxy.store import AliasRecord, CandidateRecord, CassetteRecord, PendingRecord

PANEL = "Review"
_RULE_WIDTH = 72
QUESTION = "Does this recording answer it? [y]es [n]o [a]nswer yourself [S]kip [q]uit"
_HINT = "One of y, n, a, s and q: s leaves it undecided, q ends the review."

PendingArgument = Annotated[
    str,
    typer.Argument(
        metavar="PENDING", help="Id of a pending request, its first digits, its step (RUN.NUMBER), or `last`."
    ),
]


def register(app: typer.Typer) -> None:
    """Add `pending`, `review`, `approve`, `reject`, `answer` and `aliases`."""
    for verb in (pending, review, approve, reject, answer, aliases):
        app.command(verb.__name__, rich_help_panel=PANEL)(verb)


def pending(
    put_away: Annotated[bool, typer.Option("--all", help="Show those that were rejected too.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the requests that replay refused, newest first, with how many recordings are near."""
    settings = settings_for(store)
    with open_desk(settings, write=False) as desk:
        found = [each for each in desk.log.pending.all() if put_away or not each.put_away]
        candidates = [desk.log.pending.candidates(each) for each in found]
    if as_json:
        print_json([_to_json(each, of) for each, of in zip(found, candidates, strict=True)])
        return
    if not found:
        _print_nothing_pending(settings)
        return
    out = console()
    out.print(listing(_pending_columns(found, candidates), out.width))
    out.print(
        Text(
            f"\nrewind review {found[0].id[:SHORT_ID]} shows one; rewind review alone goes through them all.",
            style="dim",
        )
    )


def review(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[PENDING]", help="Id of a pending request; all of them without one."),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a pending request beside the recordings that are near, and ask which of them answers it.

    Where nobody sits at a terminal it only shows them.
    """
    settings = settings_for(store)
    asks = not as_json and at_terminal()
    with open_desk(settings, write=asks) as desk:
        held = desk.log.pending
        found = [held.find(name)] if name else [each for each in held.all() if not each.put_away]
        if as_json:
            shown: list[JsonValue] = [_review_json(desk, each) for each in found]
            print_json(shown[0] if name else shown)
            return
        if not found:
            _print_nothing_pending(settings)
            return
        for at, each in enumerate(found, start=1):
            if len(found) > 1:
                console().print(Text(f"{at} of {len(found)}", style="dim"))
            if not _review_one(desk, each, asks=asks):
                break


def approve(
    name: PendingArgument,
    cassette: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="The recording that answers it; the best candidate without."),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Have a recording answer a pending request from now on."""
    with open_desk(settings_for(store), write=True) as desk:
        found = desk.log.pending.find(name)
        chosen = desk.store.cassette(cassette or best(desk.store, desk.log, found))
        _approve(desk, found, chosen)


def reject(
    name: PendingArgument,
    cassette: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The candidate that does not answer it.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Say no to a candidate; without one to all of them, and put the request away until it comes again."""
    with open_desk(settings_for(store), write=True) as desk:
        found = desk.log.pending.find(name)
        chosen = desk.store.cassette(cassette) if cassette else None
        desk.log.pending.reject(found, chosen.id if chosen else None)
    what = f"{chosen.id[:SHORT_ID]} is no answer to {found.id[:SHORT_ID]}" if chosen else ""
    console().print(Text(what or f"{found.id[:SHORT_ID]} is put away until it is refused again"))


def aliases(
    remove: Annotated[
        str | None, typer.Option("--remove", metavar="ID", help="Remove an alias: its request misses again.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the approved pairings, newest first: which request is answered by which recording."""
    settings = settings_for(store)
    with open_desk(settings, write=remove is not None) as desk:
        if remove is not None:
            gone = desk.store.aliases.find(remove)
            desk.store.aliases.remove(gone.id)
            console().print(Text(f"alias {gone.id[:SHORT_ID]} is removed: its request misses again"))
            return
        found = desk.store.aliases.all()
        previews = [_preview(desk, each) for each in found]
    if as_json:
        print_json(
            [
                {**each.model_dump(mode="json"), "preview": preview}
                for each, preview in zip(found, previews, strict=True)
            ]
        )
        return
    out = console()
    if not found:
        out.print(Text(f"No aliases in {safe_line(str(settings.store))}."), soft_wrap=True)
        out.print(Text("`rewind review` makes them, from requests that replay refused.", style="dim"))
        return
    out.print(listing(_alias_columns(found, previews), out.width))


# -- one pending request


def at_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _review_one(desk: Desk, found: PendingRecord, *, asks: bool) -> bool:
    """Show one and, if somebody is there, ask; whether to go on to the next."""
    out = console()
    asked = asked_of(desk, found)
    out.print(pending_facts(found))
    pairs = offered(desk, asked, found)
    near = [] if pairs else [each for each in (nearest(desk, asked, found),) if each is not None]
    if not pairs:
        out.print(Text(f"\nNo recording is near enough ({_threshold(desk)}).", style="yellow"))
    for at, each in enumerate(pairs or near, start=1):
        out.print(Text("─" * min(_RULE_WIDTH, out.width), style="dim"))
        out.print(title(each, at, len(pairs)))
        for line in lines(each, out.width):
            out.print(line)
        if asks:
            decision = _ask()
            if decision == "y":
                try:
                    _approve(desk, found, each.cassette)
                except ReviewError as error:  # another may do
                    print_error(str(error))
                    continue
                return True
            if decision == "n":
                desk.log.pending.reject(found, each.cassette.id)
                if at == len(pairs or near):
                    _print_still_pending(found)
            elif decision == "a":
                edit_and_store(desk, found)
                return True
            elif decision == "q":
                return False
        else:
            _print_commands(found, each)
    if not (pairs or near) or not asks:
        short = found.id[:SHORT_ID]
        out.print(
            Text("write an answer: ", style="dim").append(f"rewind answer {short} --edit", style="bold")
        )
        if not (pairs or near):
            out.print(
                Text("or record it: ", style="dim").append("rewind run --mode auto -- CMD …", style="bold")
            )
        out.print()
    return True


def _ask() -> str:
    while True:
        said = typer.prompt(QUESTION, default="s", show_default=False)
        if said.strip().lower()[:1] in tuple("ynasq"):
            return str(said).strip().lower()[:1]
        console().print(Text(_HINT, style="dim"))


def _approve(desk: Desk, found: PendingRecord, chosen: CassetteRecord) -> None:
    review = Review(desk.store, desk.log, desk.reader, redact_answers=desk.settings.redact_answers)
    alias = review.approve(found, chosen, time.time())
    out = console()
    out.print(
        Text("approved: ", style="green").append(
            f"{alias.id[:SHORT_ID]} is answered by {chosen.id[:SHORT_ID]} (tier alias)", style="default"
        )
    )
    if found.preview:  # `last` does not say which that is
        out.print(Text(f"  {safe_line(found.preview)}", style="dim"))
    if desk.settings.cassettes:
        out.print(Text("it is in this store alone: the folder `cassettes` has no aliases", style="yellow"))
    out.print(Text(f"undo it: rewind aliases --remove {alias.id[:SHORT_ID]}", style="dim"))


def _print_still_pending(found: PendingRecord) -> None:
    out, short = console(), found.id[:SHORT_ID]
    out.print(Text(f"That was the last: {short} stays pending.", style="yellow"))
    out.print(Text("put it away: ", style="dim").append(f"rewind reject {short}", style="bold"))
    out.print(Text("write one:   ", style="dim").append(f"rewind answer {short} --edit", style="bold"))


def _print_commands(found: PendingRecord, each: Pair) -> None:
    out = console()
    words = f"{found.id[:SHORT_ID]} {each.cassette.id[:SHORT_ID]}"
    out.print(Text("yes: ", style="dim").append(f"rewind approve {words}", style="bold"))
    out.print(Text("no:  ", style="dim").append(f"rewind reject {words}", style="bold"))


def _threshold(desk: Desk) -> str:
    return f"review_threshold = {desk.settings.review_threshold:g}"


def _print_nothing_pending(settings: Settings) -> None:
    out = console()
    out.print(Text(f"Nothing is pending in {safe_line(str(settings.store))}."), soft_wrap=True)
    out.print(Text("What replay refuses is kept here: rewind run --mode replay -- CMD …", style="dim"))


# -- columns and JSON


def _pending_columns(found: list[PendingRecord], candidates: list[list[CandidateRecord]]) -> list[Column]:
    open_ones = [[each for each in of if not each.rejected] for of in candidates]
    scores = [
        Text(f"{of[0].score:.2f}", style=score_style(of[0].score)) if of else Text("–", style="dim")
        for of in open_ones
    ]
    models = [str(each.request.params.get("model") or "") for each in found]
    return [
        Column("id", [Text(each.id[:SHORT_ID], style="cyan") for each in found]),
        Column("refused", [when(each.last_at) for each in found]),
        Column("times", [str(each.count) for each in found], justify="right", from_width=90),
        Column("session", [each.session for each in found], from_width=100),
        Column("step", [f"{each.run}.{each.step}" for each in found], from_width=140),
        Column("model", models, from_width=90),
        Column("near", [str(len(of)) if of else "" for of in open_ones], justify="right"),
        Column("best", scores, justify="right"),
        Column("", [Text("rejected" if each.put_away else "", style="red") for each in found]),
        Column("asks", [each.preview or each.request.path for each in found], cut=True),
    ]


def _alias_columns(found: list[AliasRecord], previews: list[str]) -> list[Column]:
    return [
        Column("id", [Text(each.id[:SHORT_ID], style="magenta") for each in found]),
        Column("answered by", [Text(each.cassette[:SHORT_ID], style="cyan") for each in found]),
        Column("score", ["" if each.score is None else f"{each.score:.2f}" for each in found]),
        Column("approved", [when(each.approved_at) for each in found]),
        Column("step", [each.step for each in found], from_width=120),
        Column("asks", previews, cut=True),
    ]


def _preview(desk: Desk, alias: AliasRecord) -> str:
    body = desk.store.aliases.body(alias)
    return desk.reader.read_kept(alias.request, alias.exact, body).preview


def _to_json(found: PendingRecord, candidates: list[CandidateRecord]) -> JsonObject:
    return {
        **found.model_dump(mode="json"),
        "candidates": [each.model_dump(mode="json") for each in candidates],
    }


def _review_json(desk: Desk, found: PendingRecord) -> JsonObject:
    asked = asked_of(desk, found)
    pairs = (pair(desk, asked, each) for each in desk.log.pending.candidates(found))
    shown: list[JsonValue] = [each.to_json() for each in pairs if each is not None]
    near = None if shown else nearest(desk, asked, found)
    return {
        **found.model_dump(mode="json"),
        "canonical": asked.canonical.to_json() if asked.canonical else None,
        "candidates": shown,
        "nearest": near.to_json() if near else None,
    }
