"""`rewind stats`: what it counts, for whom, since when; with prices and without."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from cli.shelf import RUN, START, Call, Shelf, chat, chat_answer, step
from rewind_proxy.canonical.model import Tier
from rewind_proxy.cli import prices
from rewind_proxy.cli.amounts import ago, bars, dollars, moment, offset, percent
from rewind_proxy.cli.savings import with_money
from rewind_proxy.report import Report
from rewind_proxy.store import StepRecord

pytestmark = pytest.mark.usefixtures("place", "no_prices")


@pytest.fixture
def no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where the library is not installed."""
    monkeypatch.setattr(prices, "load_prices", lambda: None)


class FakePrices:
    """Knows one model, at a dollar a token; what is read from a cache is free."""

    name = "fake-prices 1"

    def __init__(self) -> None:
        self.asked: list[StepRecord] = []

    def cost(self, step: StepRecord) -> Decimal | None:
        self.asked.append(step)
        return Decimal(step.input_tokens - step.cached_tokens) if step.model == "gpt-test" else None


@pytest.fixture
def fake_prices(no_prices: None, monkeypatch: pytest.MonkeyPatch) -> FakePrices:
    """A source of prices of which everything is known."""
    made = FakePrices()
    monkeypatch.setattr(prices, "load_prices", lambda: made)
    return made


def told(rewind: Call, *arguments: str) -> dict[str, Any]:
    """The JSON of `rewind stats`."""
    status, out, err = rewind("stats", "--json", *arguments)
    assert (status, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def line(out: str, name: str) -> str:
    """What stands behind a name in the list of facts."""
    return next(row.removeprefix(name).strip() for row in out.splitlines() if row.startswith(name))


class TestNumbers:
    def test_numbers(self, rewind: Call, shelf: Shelf) -> None:
        """Hits save tokens and time, other tiers do not; sizes are those of the store."""
        shelf.record(chat("q"), chat_answer("a"))
        shelf.log(step(1, "exact"), step(2, "normalised"), step(3, "recorded"), step(4, "passed", cls="side"))
        found = told(rewind)
        assert found["tiers"] == {"exact": 1, "normalised": 1, "recorded": 1}
        assert (found["runs"], found["steps"], found["side"]) == (1, 3, 1)
        assert found["tokens_saved"] == 2 * (1200 + 34)
        assert found["saved_ms"] == 2 * (4200 - 200)
        assert found["store"]["path"] == str(shelf.settings.store)
        assert found["store"]["cassettes"] == 1
        assert found["store"]["bytes_on_disk"] > found["store"]["bytes_uncompressed"] > 0
        assert found["store"]["indexed"] == 1
        assert (found["hits"], found["hit_rate"]) == (2, 0.6667)
        out = rewind("stats")[1]
        assert "3: 1 exact, 1 normalised, 1 recorded" in out
        assert "2,468" in out
        assert "8.0 s" in out

    def test_cached_tokens_are_part_of_what_went_in(self, rewind: Call, shelf: Shelf) -> None:
        """In, out and from a cache are told apart; their sum counts nothing twice."""
        shelf.log(step(1, "exact", cached_tokens=1000), step(2, "recorded", cached_tokens=7))
        found = told(rewind)
        names = ("tokens_saved", "input_tokens_saved", "output_tokens_saved", "cached_tokens_saved")
        assert [found[name] for name in names] == [1234, 1200, 34, 1000]
        assert (
            line(rewind("stats")[1], "tokens saved") == "1,234: 1,200 in (1,000 of them from a cache), 34 out"
        )

    def test_by_model(self, rewind: Call, shelf: Shelf) -> None:
        """Each model that was asked for has its own counts, the most called first."""
        shelf.log(
            step(1, "exact", model="small"),
            step(2, "exact", model="large"),
            step(3, "miss", model="large"),
            step(4, "passed", cls="side", model=None),
        )
        large, small = (model for model in told(rewind)["models"])
        assert (large["model"], large["tiers"], large["hit_rate"]) == ("large", {"miss": 1, "exact": 1}, 0.5)
        assert (small["model"], small["tokens_saved"]) == ("small", 1234)
        rows = [row.split() for row in rewind("stats")[1].splitlines()]
        assert ["large", "50", "%", "1", "miss,", "1", "exact", "1,234", "4.0", "s"] in rows

    def test_by_session(self, rewind: Call, shelf: Shelf) -> None:
        """Each session has its runs and counts; without a named one there is no table of them."""
        shelf.log(step(1, "exact"))
        assert "\nsession" not in rewind("stats")[1]
        for run in ("20261130-120000-0001", "20261130-130000-0002"):
            shelf.log(step(1, "exact", run=run), step(2, "miss", run=run), run=run, session="nightly")
        nightly, unnamed = told(rewind)["sessions"]
        assert (nightly["session"], nightly["runs"], nightly["steps"]) == ("nightly", 2, 4)
        assert (unnamed["session"], unnamed["runs"], unnamed["hit_rate"]) == ("", 1, 1.0)
        out = rewind("stats")[1]
        assert "(no name)" in out
        assert "nightly" in out

    def test_hit_rate_run_by_run(self, rewind: Call, shelf: Shelf) -> None:
        """The rate of each run, the oldest first, as numbers and as bars."""
        per_run: tuple[tuple[Tier, ...], ...] = (("recorded",), ("exact", "miss"), ("exact",))
        for number, tiers in enumerate(per_run):
            run = f"20261130-12000{number}-aaaa"
            shelf.log(*(step(n, tier, run=run) for n, tier in enumerate(tiers, 1)), run=run)
        assert [each["hit_rate"] for each in told(rewind)["hit_rates"]] == [0.0, 0.5, 1.0]
        assert line(rewind("stats")[1], "hit rate").startswith("50 %  ▁▅█")

    def test_how_much_smaller_the_store_is(self, rewind: Call, shelf: Shelf) -> None:
        """What clients sent and got is set against the bytes on disk."""
        for number in range(30):
            shelf.record(chat("x" * 50_000, f"q{number}"), chat_answer("a"), body_length=50_000)
        store = told(rewind)["store"]
        assert store["bytes_recorded"] == 30 * (50_000 + len(chat_answer("a")))
        assert store["bytes_uncompressed"] < store["bytes_recorded"] / 20
        ratio = store["bytes_recorded"] / store["bytes_on_disk"]
        assert ratio > 5
        assert f"({ratio:.1f} × smaller)" in rewind("stats")[1]

    @pytest.mark.parametrize("columns", [80, 100, 120])
    def test_no_count_is_cut(self, rewind: Call, shelf: Shelf, columns: int) -> None:
        """Where a line is too short for all tiers they go on below it; the name still tells who."""
        tiers: tuple[Tier, ...] = ("miss", "exact", "normalised", "alias", "recorded")
        names = [tier for tier in tiers for _ in range(100)]
        shelf.log(*(step(n, tier, model="claude-sonnet-5-20260101") for n, tier in enumerate(names, 1)))
        for verb in ("stats", "runs"):
            out = rewind(verb, columns=columns)[1]
            assert all(f"100 {tier}" in out for tier in tiers)
            assert max(len(each.rstrip()) for each in out.splitlines()) <= columns
            assert "claude-so" in out if verb == "stats" else RUN in out


class TestFilters:
    def test_one_session(self, rewind: Call, shelf: Shelf) -> None:
        """`--session` leaves only its runs; the empty name is that of calls without one."""
        other = "20261130-120000-0001"
        shelf.log(step(1, "exact"), session="a")
        shelf.log(step(1, "miss", run=other), run=other)
        assert told(rewind, "--session", "a")["tiers"] == {"exact": 1}
        assert told(rewind, "--session", "")["tiers"] == {"miss": 1}
        assert told(rewind, "--session", "b")["steps"] == 0
        assert "No such runs" in rewind("stats", "--session", "b")[1]

    def test_since(self, rewind: Call, shelf: Shelf) -> None:
        """`--since` leaves only the calls from then on, in whatever run they are."""
        now = time.time()
        shelf.log(
            step(1, "miss", started_at=now - 7200),
            step(2, "exact", started_at=now - 60),
            started_at=now - 7300,
        )
        shelf.log(run="20261130-120000-0001", started_at=now - 9000)
        found = told(rewind, "--since", "1h")
        assert (found["runs"], found["tiers"]) == (1, {"exact": 1})
        assert found["since"] == pytest.approx(now - 3600, abs=60)
        assert told(rewind)["runs"] == 2

    @pytest.mark.parametrize("value", ["yesterday", "7", "7x", "2026-13-01", "", "-7d"])
    def test_what_is_no_moment_is_said(self, rewind: Call, value: str) -> None:
        """A wrong moment is a wrong call, and the right ways are named."""
        status, _, err = rewind("stats", "--since", value)
        assert status == 2
        assert "7d" in err


class TestMoney:
    def test_of_hits_only(self, rewind: Call, shelf: Shelf, fake_prices: FakePrices) -> None:
        """Hits are priced, each once, with what came from a cache told apart; other tiers are not."""
        shelf.log(step(1, "exact", cached_tokens=200), step(2, "normalised"), step(3, "recorded"))
        found = told(rewind)
        assert (found["money_saved_usd"], found["prices"]) == (2200.0, "fake-prices 1")
        assert [each.number for each in fake_prices.asked] == [1, 2]
        assert [model["money_saved_usd"] for model in found["models"]] == [2200.0]
        out = rewind("stats")[1]
        assert line(out, "money saved") == "$2,200.00 at the providers' list prices (fake-prices 1)"
        assert "not priced" not in out

    @pytest.mark.usefixtures("fake_prices")
    def test_an_unknown_model_is_counted_and_named(self, rewind: Call, shelf: Shelf) -> None:
        """Its hits are no zero in the sum: they are told apart, by name."""
        shelf.log(step(1, "exact"), *(step(n, "exact", model="own-model") for n in (2, 3)))
        found = told(rewind)
        assert (found["money_saved_usd"], found["unpriced"]) == (1200.0, {"own-model": 2})
        assert "2 hits of models without a known price (own-model 2)" in rewind("stats")[1]
        own, known = found["models"]
        assert (own["money_saved_usd"], known["money_saved_usd"]) == (None, 1200.0)

    @pytest.mark.usefixtures("fake_prices")
    def test_nothing_known_is_not_nothing(self, rewind: Call, shelf: Shelf) -> None:
        """Where no hit has a price the sum is unknown, not 0."""
        shelf.log(step(1, "exact", model="own-model"))
        assert told(rewind)["money_saved_usd"] is None
        assert line(rewind("stats")[1], "money saved") == "unknown"

    @pytest.mark.usefixtures("fake_prices")
    def test_hits_without_counted_tokens_are_said(self, rewind: Call, shelf: Shelf) -> None:
        """A recording that tells no tokens has no price; a count of tokens costs nothing."""
        shelf.log(
            step(1, "exact"),
            step(2, "exact", input_tokens=0, output_tokens=0),
            step(3, "exact", operation="count_tokens", model="own-model"),
        )
        found = told(rewind)
        assert (found["uncounted"], found["unpriced"], found["money_saved_usd"]) == (1, {}, 1200.0)
        assert "1 hit without counted tokens" in rewind("stats")[1]

    def test_without_prices_it_says_how_to_get_them(self, rewind: Call, shelf: Shelf) -> None:
        """Nothing is guessed: the line says what is missing, and JSON has null."""
        shelf.log(step(1, "exact"))
        found = told(rewind)
        assert (found["money_saved_usd"], found["prices"]) == (None, None)
        wanted = "pip install genai-prices" if sys.version_info >= (3, 12) else "Python 3.12"
        assert wanted in line(rewind("stats")[1], "money saved")

    @pytest.mark.usefixtures("fake_prices")
    def test_the_report_of_a_run_has_it_too(self, shelf: Shelf) -> None:
        """`rewind run` adds up its own runs, from the log."""
        steps = [step(1, "exact"), step(2, "miss")]
        shelf.log(*steps)
        shelf.log(step(1, "exact", run="20261130-120000-0001"), run="20261130-120000-0001")
        report = Report("auto")
        for each in steps:
            report.add(each)
        found = with_money(report.to_json(cassettes=0, child_exit=0), shelf.settings)
        assert (found["runs"], found["money_saved_usd"]) == ([RUN], 1200.0)


def test_prices_are_there_where_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The development environment has them from Python 3.12 on, where they install beside mitmproxy."""
    monkeypatch.undo()
    assert (prices.load_prices() is not None) == (sys.version_info >= (3, 12))


if sys.version_info >= (3, 12):
    OPENAI, ANTHROPIC, GATEWAY = "api.openai.com", "api.anthropic.com", "llm.corp.example"

    @pytest.fixture
    def cost(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Decimal | None]:
        """The price of a call by the real price data, with no way out to the network."""

        def refuse(*_: object) -> None:
            raise AssertionError("a look at prices went out")

        monkeypatch.undo()
        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        source = prices.load_prices()
        assert source is not None

        def of(host: str, model: str | None, **counts: int) -> Decimal | None:
            known = {"host": host, "model": model, "input_tokens": 100_000, "output_tokens": 1000} | counts
            return source.cost(step(1, "exact", **known))

        return of

    @pytest.mark.parametrize(
        ("host", "model"), [(OPENAI, "gpt-5.1-codex"), (ANTHROPIC, "claude-sonnet-4-5-20250929")]
    )
    def test_reading_from_a_cache_is_cheaper(
        cost: Callable[..., Decimal | None], host: str, model: str
    ) -> None:
        """A call costs something, more with more output, and less when most of it came from a cache."""
        plain, cached = cost(host, model), cost(host, model, cached_tokens=90_000)
        longer = cost(host, model, output_tokens=2000)
        assert plain is not None
        assert cached is not None
        assert longer is not None
        assert 0 < cached < plain / 2
        assert plain < longer

    def test_writing_to_a_cache_has_its_price(cost: Callable[..., Decimal | None]) -> None:
        """Anthropic takes more for what it keeps."""
        model = "claude-sonnet-4-5"
        kept, plain = cost(ANTHROPIC, model, cache_written_tokens=90_000), cost(ANTHROPIC, model)
        assert kept is not None
        assert plain is not None
        assert kept > plain

    def test_a_gateway_has_the_list_price(cost: Callable[..., Decimal | None]) -> None:
        """A host that the price data do not know costs what the model's maker takes."""
        assert cost(GATEWAY, "gpt-5.1") == cost(OPENAI, "gpt-5.1")

    @pytest.mark.parametrize("host", [OPENAI, GATEWAY])
    @pytest.mark.parametrize("model", [None, "", "own-model", "m" * 100_000])
    def test_an_unknown_model_has_no_price(
        cost: Callable[..., Decimal | None], host: str, model: str | None
    ) -> None:
        """Nothing is guessed, wherever it was asked."""
        assert cost(host, model) is None

    def test_counts_that_do_not_go_together_have_no_price(cost: Callable[..., Decimal | None]) -> None:
        """More from a cache than went in at all is no call that can be priced."""
        assert cost(OPENAI, "gpt-5.1", cached_tokens=100_001) is None


class TestAmounts:
    def test_ages(self) -> None:
        """Near moments by their distance, far ones and those to come by their date."""
        ages = (5, 70, 3600, 90_000, 3 * 86_400)
        told = [ago(START - age, START) for age in ages]
        assert told == ["just now", "1 min ago", "1 h ago", "25 h ago", "3 days ago"]
        assert ago(START - 30 * 86_400, START) == "2026-10-31"
        assert ago(START + 86_400, START) == "2026-12-01"

    def test_moments(self) -> None:
        """A distance counts back from now; a date without an offset is local."""
        assert moment("90m", START) == START - 5400
        assert moment("2w", START) == START - 14 * 86_400
        assert moment("2026-11-30T11:45:03+00:00", START) == START
        assert offset(START - moment("2026-11-30T11:44:00Z", START)) == "1:03"

    def test_times_since_a_start(self) -> None:
        """Minutes and seconds, with hours where there are any."""
        assert [offset(seconds) for seconds in (-1, 7.9, 725, 3723)] == ["0:00", "0:07", "12:05", "1:02:03"]

    def test_money_and_rates(self) -> None:
        """What is little is not told as nothing, and nearly all not as all."""
        assert [dollars(Decimal(text)) for text in ("0", "0.0001", "0.07", "1234.5")] == [
            "$0.00",
            "under $0.01",
            "$0.07",
            "$1,234.50",
        ]
        assert [percent(rate) for rate in (None, 0.0, 0.0001, 0.5, 0.9999, 1.0)] == [
            "",
            "0 %",
            "1 %",
            "50 %",
            "99 %",
            "100 %",
        ]
        assert bars([0, 0.5, 1]) == "▁▅█"
