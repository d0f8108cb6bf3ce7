"""What a replayed call would have cost: list prices of `genai-prices`, where that library is installed.

Its price data come with it; nothing here goes to the network. It wants a newer h11 than mitmproxy 11 allows,
so it is an extra (`rewind-proxy[prices]`) that needs mitmproxy 12 and with it Python 3.12.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from types import ModuleType
from typing import Protocol

from rewind_proxy.store import StepRecord

HOW_TO_GET = (
    "unknown without prices: `pip install genai-prices` beside Rewind"
    if sys.version_info >= (3, 12)
    else "unknown without prices, which need Rewind on Python 3.12 or newer"
)


class Prices(Protocol):
    """A source of list prices."""

    @property
    def name(self) -> str:
        """What it is, with its version."""
        ...

    def cost(self, step: StepRecord) -> Decimal | None:
        """What the call of a hit would have cost in US dollars; None when its model has no known price."""
        ...


def load_prices() -> Prices | None:
    """The installed source of prices, or None."""
    try:
        return GenaiPrices(import_module("genai_prices"))
    except ImportError:
        return None


class GenaiPrices:
    """`genai-prices` by its documented calls."""

    def __init__(self, library: ModuleType) -> None:
        self._library = library
        self.name = f"genai-prices {library.__version__}"

    def cost(self, step: StepRecord) -> Decimal | None:
        """The price on the day of the call, of the provider that its host belongs to.

        A host that the price data do not know is a gateway: there the list price of the model's maker counts.
        """
        usage = self._library.Usage(
            input_tokens=step.input_tokens,
            output_tokens=step.output_tokens,
            cache_read_tokens=step.cached_tokens,
            cache_write_tokens=step.cache_written_tokens,
        )
        url = f"https://{step.host}{step.path}"
        day = datetime.fromtimestamp(step.started_at, UTC)
        try:
            priced = self._library.calc_price(
                usage,
                step.model or "",
                provider_api_url=url if self._is_provider(url) else None,
                genai_request_timestamp=day,
            )
        except (LookupError, ValueError):  # no such model; counts that do not go together
            return None
        return Decimal(priced.total_price)

    def _is_provider(self, url: str) -> bool:
        try:
            self._library.data_snapshot.get_snapshot().find_provider(None, None, url)
        except LookupError:
            return False
        return True
