"""The adapters by wire format."""

from __future__ import annotations

from collections.abc import Mapping

from rewind_proxy.canonical.model import Wire
from rewind_proxy.wire.adapter import Adapter
from rewind_proxy.wire.anthropic import Anthropic
from rewind_proxy.wire.chat_completions import ChatCompletions
from rewind_proxy.wire.gemini import Gemini
from rewind_proxy.wire.generic import Generic
from rewind_proxy.wire.responses import Responses

ADAPTERS: Mapping[Wire, Adapter] = {
    "chat_completions": ChatCompletions(),
    "responses": Responses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
    "generic": Generic(),
}
