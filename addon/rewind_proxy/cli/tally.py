"""What a number of calls came to: hits by tier, and what the hits saved. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

from rewind_proxy.canonical.model import HIT_TIERS, JsonObject, Tier
from rewind_proxy.cli.prices import Prices
from rewind_proxy.store import StepRecord

# What went wrong first: the end of a line may be cut.
_TIERS: tuple[Tier, ...] = ("miss", "failed", "exact", "normalised", "alias", "recorded", "passed")


@dataclass(slots=True)
class Tally:
    """Counts of steps, added one by one."""

    prices: Prices | None = None
    counts: Counter[Tier] = field(default_factory=Counter)
    side: int = 0
    """Calls that are no model calls."""
    input_tokens: int = 0
    """Saved, as the next two and `saved_ms`: of hits only."""
    output_tokens: int = 0
    cached_tokens: int = 0
    saved_ms: int = 0
    models: Counter[str] = field(default_factory=Counter)
    money: Decimal = Decimal(0)
    priced: int = 0
    unpriced: Counter[str] = field(default_factory=Counter)
    """Hits whose model has no known price."""
    uncounted: int = 0
    """Hits whose recording tells no tokens: a stream of Chat Completions without `include_usage`, media."""

    def add(self, step: StepRecord) -> None:
        """Count one step."""
        if step.cls != "model":
            self.side += 1
            return
        self.counts[step.tier] += 1
        self.models[step.model or ""] += 1
        if step.tier not in HIT_TIERS:
            return
        self.input_tokens += step.input_tokens
        self.output_tokens += step.output_tokens
        self.cached_tokens += step.cached_tokens
        self.saved_ms += max(0, step.saved_ms - step.latency_ms)
        if step.operation == "count_tokens":
            return  # costs nothing anywhere
        if not step.input_tokens and not step.output_tokens:
            self.uncounted += 1
        elif self.prices is not None:
            self._price(step, self.prices)

    def absorb(self, other: Tally) -> None:
        """Add what another one has counted."""
        self.counts += other.counts
        self.models += other.models
        self.unpriced += other.unpriced
        self.side += other.side
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_tokens += other.cached_tokens
        self.saved_ms += other.saved_ms
        self.money += other.money
        self.priced += other.priced
        self.uncounted += other.uncounted

    def _price(self, step: StepRecord, prices: Prices) -> None:
        cost = prices.cost(step)
        if cost is None:
            self.unpriced[step.model or ""] += 1
        else:
            self.priced += 1
            self.money += cost

    @property
    def tiers(self) -> dict[Tier, int]:
        """Model calls by tier, in the order to show them."""
        return {tier: self.counts[tier] for tier in _TIERS if self.counts[tier]}

    @property
    def steps(self) -> int:
        """All model calls."""
        return self.counts.total()

    @property
    def hits(self) -> int:
        """Model calls that were answered from the store."""
        return sum(self.counts[tier] for tier in HIT_TIERS)

    @property
    def hit_rate(self) -> float | None:
        """Hits to model calls, from 0 to 1; None without any."""
        return self.hits / self.steps if self.steps else None

    @property
    def tokens_saved(self) -> int:
        """In and out."""
        return self.input_tokens + self.output_tokens

    @property
    def money_saved(self) -> Decimal | None:
        """US dollars; None when nothing can tell: no prices, or none for any of the hits."""
        known = self.priced or not (self.unpriced or self.uncounted)
        return self.money if self.prices is not None and known else None

    def to_json(self) -> JsonObject:
        """Its members as `rewind stats --json` prints them for everything, a model and a session."""
        return {
            "steps": self.steps,
            "tiers": dict(self.tiers.items()),
            "side": self.side,
            "hits": self.hits,
            "hit_rate": None if self.hit_rate is None else round(self.hit_rate, 4),
            "tokens_saved": self.tokens_saved,
            "input_tokens_saved": self.input_tokens,
            "output_tokens_saved": self.output_tokens,
            "cached_tokens_saved": self.cached_tokens,
            "saved_ms": self.saved_ms,
            "money_saved_usd": None if self.money_saved is None else round(float(self.money_saved), 6),
            "unpriced": dict(self.unpriced.items()),
            "uncounted": self.uncounted,
        }


def tally(steps: Iterable[StepRecord], prices: Prices | None = None) -> Tally:
    """The tally of some steps."""
    made = Tally(prices)
    for step in steps:
        made.add(step)
    return made
