"""What stands behind the links of a chain, as text, so that the store finds what is alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rewind_proxy.canonical.fingerprint import Normalised
from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.store import Sketched

_ENOUGH = 20_000
"""Characters; a sketch looks at no more."""


def sketched(normalised: Normalised, endpoint: str, signature: Callable[[], bytes]) -> Sketched:
    """The sketches of a request; `endpoint` is what its second link stands for when that is no message.

    `signature` makes that of the whole request (`similarity`).
    """
    kept = normalised.shown.kept()
    leading = len(kept.messages) + 1 - len(normalised.links)  # the system message that the first link holds

    def link(at: int) -> str:
        if at == 0:
            head: list[JsonValue] = [*kept.tools]
            if leading:
                head += kept.messages[0].parts
            return text_of(head)
        return endpoint or text_of([*kept.messages[at - 1 + leading].parts])

    return Sketched(link, lambda: text_of(kept.params, names=True), signature)


def text_of(value: JsonValue, *, names: bool = False, enough: int = _ENOUGH) -> str:
    """The words of a value: its strings and numbers, and with `names` those of its members.

    No more is read when `enough` characters were.
    """
    texts: list[str] = []
    length = 0
    for text in _texts(value, names=names):
        texts.append(text)
        length += len(text)
        if length > enough:
            break
    return " ".join(texts)


def _texts(value: JsonValue, *, names: bool) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, names=names)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name == "type":
                continue
            if names:
                yield name
            yield from _texts(item, names=names)
    elif value is not None:
        yield str(value)
