"""A cache of what depends on texts stays within its bound, whatever is put into it."""

from __future__ import annotations

from rewind_proxy.canonical.cache import TextCache


def test_the_oldest_go_first_and_the_bound_holds() -> None:
    """After ten times what it holds, the newest are there, and no more text than the bound."""
    cache: TextCache[int, str] = TextCache(10_000)
    for number in range(100):
        cache.put(number, f"value {number}", 1_000)
    kept = [number for number in range(100) if cache.get(number) is not None]
    assert kept
    assert kept == list(range(100 - len(kept), 100))
    assert len(kept) * 1_000 <= 10_000


def test_a_text_put_twice_does_not_push_others_out_for_good() -> None:
    """However often one key is put, as by two threads, the cache goes on keeping other texts."""
    cache: TextCache[str, int] = TextCache(10_000)
    for number in range(100):
        cache.put("same", number, 1_000)
    cache.put("a", 1, 1_000)
    cache.put("b", 2, 1_000)
    assert (cache.get("a"), cache.get("b")) == (1, 2)


def test_a_large_text_is_kept_alone() -> None:
    """A text that fills the cache takes the place of all others; one beyond the bound is not kept."""
    cache: TextCache[str, int] = TextCache(10_000)
    cache.put("small", 1, 1_000)
    cache.put("large", 2, 9_700)
    cache.put("huge", 3, 20_000)
    assert (cache.get("small"), cache.get("large"), cache.get("huge")) == (None, 2, None)
