"""How like two requests are, by their tokens and where these stand: near is near in meaning."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.matching import similarity
from rewind_proxy.matching.similarity import likeness
from rewind_proxy.store.signature import SIGNATURE, bands
from test_engine import Desk, chat

SYSTEM = "You are a careful engineer. Read each file before you change it, and run the tests afterwards."
QUESTION = (
    "Rename the function that parses the header of a request, and keep its callers working as they are."
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A reader of requests."""
    made = Desk(tmp_path_factory.mktemp("similarity"))
    yield made
    made.store.close()


def session(*texts: str, system: str = SYSTEM, **more: Any) -> dict[str, Any]:
    """A conversation in turns, the user's first."""
    spoken = [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]
    return {"model": "m1", "messages": [{"role": "system", "content": system}, *spoken], **more}


def signed(desk: Desk, body: object, path: str = "/v1/chat/completions") -> bytes:
    """The signature of a request."""
    return desk.read(desk.request(body, path)).sketched.signature()


def alike(desk: Desk, a: object, b: object) -> float:
    """How like two requests are."""
    return likeness(signed(desk, a), signed(desk, b))


def sentence(seed: int, words: int) -> str:
    """Words that no other seed has."""
    return " ".join(f"word{seed}x{at}" for at in range(words))


def test_equal_requests_have_one_signature(desk: Desk) -> None:
    """Whatever was read before: the signature depends on the request alone."""
    assert signed(desk, session(QUESTION)) == signed(desk, session(QUESTION))
    assert len(signed(desk, session(QUESTION))) == SIGNATURE
    assert alike(desk, session(QUESTION), session(QUESTION)) == 1.0


def test_a_signature_is_what_it_was(tmp_path: Path, desk: Desk) -> None:
    """It is stored: another reader, of another day, makes the same bytes."""
    other = Desk(tmp_path)
    assert signed(other, session(QUESTION)) == signed(desk, session(QUESTION))
    assert hashlib.sha256(signed(other, session(QUESTION))).hexdigest()[:16] == "3e548c5ae4a367c5"
    other.store.close()


def test_near_beats_far(desk: Desk) -> None:
    """One word is nearer than a sentence, and that is nearer than another question."""
    word = alike(desk, session(QUESTION), session(QUESTION.replace("header", "trailer")))
    half = alike(desk, session(QUESTION), session(QUESTION[:50] + "and then write a poem about rivers."))
    other = alike(desk, session(QUESTION), session("What is the weather like in Lisbon today?"))
    assert word > 0.85 > half > other


def test_noise_does_not_count(desk: Desk) -> None:
    """Times, ids and folders are taken out before the tokens are."""
    text = "At {} the run {} ended in {}/app/src."
    a = text.format("2026-01-02T03:04:05Z", "123e4567-e89b-12d3-a456-426614174000", "/home/a")
    b = text.format("2026-11-12T13:14:15Z", "00112233-4455-6677-8899-aabbccddeeff", "/home/b")
    assert alike(desk, session(a), session(b)) == 1.0


def test_the_end_counts_and_not_the_length_of_what_it_shares(desk: Desk) -> None:
    """Two turns of one long session are far from each other, however much they have in common."""
    turns = [sentence(at, 30) for at in range(30)]
    later = [*turns, sentence(98, 30), sentence(99, 30)]
    assert alike(desk, session(*turns, "Go on."), session(*later, "And now something else entirely?")) < 0.85
    drifted = [*turns[:3], turns[3].replace("x1 ", "y1 "), *turns[4:]]
    assert alike(desk, session(*turns, "Go on."), session(*drifted, "Go on.")) > 0.95


def test_the_same_words_elsewhere_are_others(desk: Desk) -> None:
    """What the system prompt says is not what the user asks."""
    assert alike(desk, session("Hi", system=QUESTION), session(QUESTION, system="Hi")) < 0.5


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("/v1/chat/completions", chat(QUESTION)), ("/v1/messages/count_tokens", chat(QUESTION))),
        (("/v1/audio/speech", {"input": QUESTION}), ("/v1/images/generations", {"input": QUESTION})),
    ],
)
def test_requests_for_different_things_are_alike_in_nothing(
    desk: Desk, a: tuple[str, Any], b: tuple[str, Any]
) -> None:
    """Another operation, or another endpoint that is matched as a whole."""
    host = "api.anthropic.com" if "count_tokens" in b[0] else "api.openai.com"
    other = desk.read(desk.request(b[1], b[0], host)).sketched.signature()
    assert likeness(signed(desk, a[1], a[0]), other) < 0.1


def test_scripts_without_blanks_have_words_too(desk: Desk) -> None:
    """One character of a Chinese sentence is not the sentence."""
    text = "请把解析请求头的函数重新命名并且保持所有调用者都能正常工作"
    assert 0.85 < alike(desk, session(text), session(text.replace("函数", "方法"))) < 1.0


def test_what_cannot_be_read_has_no_signature(desk: Desk) -> None:
    """An opaque request is like nothing."""
    request = desk.request(None)
    opaque = desk.read(type(request)(request.method, request.host, 443, request.path, (), b"\xff\xfe"))
    assert opaque.sketched.signature() == b""


@pytest.mark.parametrize("changed", ["system", "before", "end"])
def test_what_is_alike_shares_a_band(desk: Desk, changed: str) -> None:
    """Wherever a request differs, one at the default threshold is found; one of the same agent is not."""
    found = 0
    for seed in range(40):
        system, before, end = (sentence(3 * seed + at, 60) for at in range(3))
        original = session(before, "Yes.", end, system=system)
        parts = {"system": system, "before": before, "end": end}
        kept = 10 if changed != "end" else 42
        parts[changed] = " ".join(parts[changed].split()[:kept])
        near = session(parts["before"], "Yes.", parts["end"], system=parts["system"])
        shared = {*bands(signed(desk, original))} & {*bands(signed(desk, near))}
        found += bool(shared)
        far = session(before, "Yes.", sentence(1000 + seed, 60), system=system)
        assert not {*bands(signed(desk, original))} & {*bands(signed(desk, far))}
    assert found >= (39 if changed == "end" else 30)


def test_a_next_turn_costs_its_new_messages(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session said before is not looked at again."""
    looked_at: list[object] = []

    def count(value: JsonValue) -> Sequence[int]:
        looked_at.append(value)
        return slots_of(value)

    slots_of = similarity._slots_of
    monkeypatch.setattr(similarity, "_slots_of", count)
    turns = [sentence(at, 20) for at in range(31)]
    signed(desk, session(*turns))
    assert len(looked_at) == 33
    looked_at.clear()
    signed(desk, session(*turns, "Yes.", "And now?"))
    assert len(looked_at) <= 4


@pytest.mark.parametrize(
    "piece", ["word ", "a", "请", "!", "\ud83d", "⟨uuid:1⟩ ", "\n\n", "9f86d081884c7d659a2feaa0 ", "é"]
)
def test_time_is_linear(desk: Desk, piece: str) -> None:
    """A megabyte takes less than two seconds, whatever it is made of."""
    reading = desk.read(desk.request(session(piece * (2**20 // len(piece)))))
    begun = time.process_time()
    reading.sketched.signature()
    assert time.process_time() - begun < 2
