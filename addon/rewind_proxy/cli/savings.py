"""What the hits of a run saved in money, call by call from the log: a price depends on the size of a call."""

from __future__ import annotations

from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.cli import prices as sources
from rewind_proxy.cli.environment import warn
from rewind_proxy.cli.opening import open_log
from rewind_proxy.cli.tally import tally
from rewind_proxy.errors import RewindError
from rewind_proxy.settings import Settings


def with_money(report: JsonObject, settings: Settings) -> JsonObject:
    """The report with `money_saved_usd`; null where there are no prices, or none for these models."""
    # A run that saved no tokens need not wait for the prices to be read.
    prices = sources.load_prices() if report["tokens_saved"] else None
    if prices is None:
        return report
    runs = report["runs"] if isinstance(report["runs"], list) else []
    try:
        with open_log(settings) as log:
            saved = tally((step for run in runs for step in log.steps(str(run))), prices)
    except RewindError as error:
        warn([f"the money saved is not known: {error}"])
        return report
    return report | {"money_saved_usd": saved.to_json()["money_saved_usd"]}
