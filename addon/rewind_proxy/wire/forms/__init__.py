"""Answers in every form of every wire: to the canonical answer and from it (DESIGN §8, §10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rewind_proxy.canonical.answer import Asked, CanonicalAnswer, Rendered
from rewind_proxy.canonical.model import Form, Wire
from rewind_proxy.wire.forms import anthropic, chat_completions, gemini, responses

__all__ = ["FORMS", "Forms", "convert", "parsed"]


@dataclass(frozen=True, slots=True)
class Forms:
    """How the answers of one wire are read and written."""

    parse: Callable[[Form, bytes], CanonicalAnswer | None]
    """The answer in the decoded body of a 2xx; None when it is no complete success of the wire."""
    render: Callable[[CanonicalAnswer, Asked], Rendered]
    """An answer in any form of the wire; the same bytes for the same answer."""


FORMS: Mapping[Wire, Forms] = {
    "chat_completions": Forms(chat_completions.parse, chat_completions.render),
    "responses": Forms(responses.parse, responses.render),
    "anthropic": Forms(anthropic.parse, anthropic.render),
    "gemini": Forms(gemini.parse, gemini.render),
}
"""The wires with a canonical answer: all but `generic`."""


def parsed(body: bytes, wire: Wire, form: Form) -> CanonicalAnswer | None:
    """What a recorded answer (its decoded body) means; None when it is no complete success, or `generic`."""
    forms = FORMS.get(wire)
    try:
        return forms.parse(form, body) if forms else None
    except RecursionError:  # JSON nested deeper than it can be walked
        return None


def convert(body: bytes, recorded_wire: Wire, recorded_form: Form, asked: Asked) -> Rendered | None:
    """A recorded answer (its decoded body) in the form that is asked for.

    None when it cannot be told: a `generic` wire on either side, a body that is no complete success, JSON
    nested too deeply to write again. Such a recording is no answer to the request (a miss, reason `format`).
    """
    answer, target = parsed(body, recorded_wire, recorded_form), FORMS.get(asked.wire)
    if answer is None or target is None:
        return None
    try:
        return target.render(replace(answer, wire=recorded_wire), asked)
    except RecursionError:  # what the reader of JSON takes, its writer need not
        return None
