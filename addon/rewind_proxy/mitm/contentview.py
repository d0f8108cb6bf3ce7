"""The `Rewind` content view. One object is what mitmproxy 11 and what mitmproxy 12 call a view."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, cast

from mitmproxy import contentviews, http
from mitmproxy.flow import Flow

from rewind_proxy.errors import RewindError, traceback_of
from rewind_proxy.explain.lines import Line, Style, line
from rewind_proxy.mitm.views import Views

logger = logging.getLogger(__name__)

NAME = "Rewind"
_PRIORITY = 2.0
"""Before mitmproxy's own views, of which JSON has 1: a call to a model is a conversation first."""

# The styles of mitmproxy's console, for which mitmweb 11 has classes too.
_STYLES: dict[Style, str] = {
    "system": "header",
    "user": "header",
    "assistant": "header",
    "tool": "header",
    "strong": "header",
    "place": "key",
    "faint": "offset",
    "thought": "offset",
    "media": "key",
    "before": "error",
    "bad": "error",
    "miss": "error",
    "failed": "error",
    "after": "highlight",
    "advice": "highlight",
}


def add(views: Views) -> None:
    """Put the view in its place; that of an add-on which was loaded before goes."""
    mitmproxy = cast("Any", contentviews)  # the two lines have other types for a view
    if not hasattr(mitmproxy, "registry") and (before := mitmproxy.get(NAME)) is not None:
        mitmproxy.remove(before)
    mitmproxy.add(RewindView(views))


class RewindView:
    """Shows a call to a model. It never raises: mitmproxy would show a traceback of ours."""

    name = NAME
    syntax_highlight = "none"

    def __init__(self, views: Views) -> None:
        self._views = views

    def prettify(self, data: bytes, metadata: Any) -> str:  # noqa: ARG002  # it is the flow that tells
        """mitmproxy 12: all that is shown."""
        return "\n".join(each.text for each in self._lines(metadata.flow, metadata.http_message))

    def __call__(
        self,
        data: bytes,  # noqa: ARG002  # the same
        *,
        flow: Flow | None = None,
        http_message: http.Message | None = None,
        **_: Any,
    ) -> tuple[str, Iterator[list[tuple[str, str]]]]:
        """mitmproxy 11: the name, and the styled lines."""
        shown = self._lines(flow, http_message)
        return NAME, ([*_spans(each)] for each in shown)

    def render_priority(
        self,
        data: bytes,  # noqa: ARG002  # the same
        metadata: Any = None,
        *,
        flow: Flow | None = None,
        http_message: http.Message | None = None,
        **_: Any,
    ) -> float:
        """Above all others for calls to known hosts, 0 for all else; mitmproxy 12 gives `metadata`."""
        flow = metadata.flow if metadata is not None else flow
        message = metadata.http_message if metadata is not None else http_message
        if not isinstance(flow, http.HTTPFlow) or not isinstance(message, http.Message):
            return 0.0
        return _PRIORITY if self._views.is_offered(flow) else 0.0

    def __lt__(self, other: Any) -> bool:
        return bool(self.name < other.name)

    def _lines(self, flow: Flow | None, message: http.Message | None) -> list[Line]:
        if not isinstance(flow, http.HTTPFlow) or not isinstance(message, http.Message):
            return [line(("faint", "This is no message of a call to a model."))]
        try:
            return [*self._views.lines(flow, of_answer=message is flow.response)]
        except RewindError as error:
            return [line(("faint", f"Nothing to show: {error}."))]
        except Exception as error:
            logger.error("rewind: a flow cannot be shown\n%s", traceback_of(error))
            return [line(("bad", f"Rewind cannot show it ({type(error).__name__}); its log says why."))]


def _spans(shown: Line) -> Iterator[tuple[str, str]]:
    yield "text", " " * shown.indent if shown.spans else " "  # mitmweb gives an empty line no height
    for style, text in shown.spans:
        yield _STYLES.get(style, "text"), text
