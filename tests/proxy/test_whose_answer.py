"""Which answer on a served socket is whose: what cannot be told is not recorded."""

from __future__ import annotations

import json
from typing import Any, cast

from rewind_proxy.engine import Forward, Session, Step
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.mitm.sockets.live import Live, LiveTurn
from rewind_proxy.recording import Captured
from rewind_proxy.store import StepRecord
from rewind_proxy.store.records import RunRecord
from rewind_proxy.wire.sockets import Chain

STEP = Step(Session(RunRecord(id="run", mode="auto", started_at=0.0)), 1, 0.0)
IN_DOUBT = "its frames may be those of two answers"


class Desk:
    """A socket's answers, and what a runtime would have recorded of them."""

    def __init__(self) -> None:
        self.live = Live(Chain())
        self.recorded: list[bytes] = []
        self.reasons: list[str] = []

    def ask(self, lane: str | None = None) -> None:
        """A turn goes to the provider."""
        forward = Forward(None, STEP, "model", record=True, headers=())
        self.live.turns[lane] = LiveTurn(forward, None, 0.0, cast("Runtime", self))

    def hear(self, kind: str, identifier: str = "", **more: Any) -> None:
        """An event of the provider's."""
        of_one = {"response": {"id": identifier}} if identifier else {}
        self.live.take(json.dumps({"type": kind, **of_one, **more}))

    def keep(self, _: Forward, captured: Captured) -> None:
        """As `Runtime.keep`."""
        self.recorded.append(b"".join(piece for piece, _ in captured.chunks))

    def note(self, step: StepRecord) -> None:
        """As `Runtime.note`."""
        self.reasons.append(step.reason)


def test_a_lane_is_no_part_of_what_is_recorded() -> None:
    """The recording answers other lanes and POST too."""
    desk = Desk()
    desk.ask("a")
    desk.hear("response.created", "resp_1", stream_id="a")
    desk.hear("response.completed", "resp_1", stream_id="a")
    [body] = desk.recorded
    assert body.startswith(b'event: response.created\ndata: {"type":"response.created","response"')
    assert b"stream_id" not in body


def test_a_piece_of_nobodys_answer_is_a_doubt_for_all() -> None:
    """A delta without a lane is missing in one of two answers; what is of the whole socket is in none."""
    desk = Desk()
    desk.ask("a")
    desk.ask("b")
    desk.hear("codex.rate_limits")
    desk.hear("response.completed", "resp_1", stream_id="a")
    desk.ask("a")
    desk.hear("response.output_text.delta", delta="Hi")
    desk.hear("response.completed", "resp_2", stream_id="a")
    desk.hear("response.completed", "resp_3", stream_id="b")
    assert len(desk.recorded) == 1
    assert len(set(desk.reasons)) == 1
    assert len(desk.reasons) == 2


def test_the_rest_of_a_turn_that_was_cut_short_is_no_answer() -> None:
    """A change of the settings ends a turn here; its provider goes on with it, and then with the next."""
    desk = Desk()
    desk.ask()
    desk.hear("response.created", "resp_1")
    desk.live.end("the settings were changed meanwhile")
    desk.ask()
    desk.hear("response.completed", "resp_1")
    assert desk.reasons == ["the settings were changed meanwhile", IN_DOUBT]
    assert desk.recorded == []


def test_after_one_mixed_answer_nothing_is_recorded() -> None:
    """Once answers are one turn late, each looks whole by itself."""
    desk = Desk()
    desk.ask()
    desk.hear("response.created", "resp_1")
    desk.hear("response.completed", "resp_0")
    desk.ask()
    desk.hear("response.created", "resp_1")
    desk.hear("response.completed", "resp_1")
    assert desk.reasons == [IN_DOUBT] * 2
    assert desk.recorded == []
