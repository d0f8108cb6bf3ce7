"""OpenAI Responses, as the API and Codex speak it (bodies of POSTs and of `response.create` frames alike)."""

from __future__ import annotations

from rewind_proxy.canonical.model import (
    CanonicalRequest,
    Ending,
    Form,
    JsonObject,
    Operation,
    Target,
    Volatile,
    Wire,
)
from rewind_proxy.wire import answers
from rewind_proxy.wire.address import add_address
from rewind_proxy.wire.conversation import BILLING_LINE, Conversation, text_parts
from rewind_proxy.wire.parameters import (
    BOOKKEEPING,
    OPENAI_CACHE,
    known_tools,
    lift,
    name_bookkeeping,
    openai_tool_choice,
    present,
    rename,
    take_list,
)
from rewind_proxy.wire.responses_items import PASSTHROUGH, add_item, content_parts

_NAMES = {"max_output_tokens": "max_tokens"}


class Responses:
    """The adapter of `…/responses`."""

    wire: Wire = "responses"
    volatile = Volatile(
        params=BOOKKEEPING | OPENAI_CACHE | {"client_metadata", "metadata", "safety_identifier"},
        members=frozenset({"item_id", PASSTHROUGH, "cache_control", "prompt_cache_breakpoint"}),
        system_prefixes=BILLING_LINE,
    )

    def request(self, target: Target, operation: Operation, body: JsonObject) -> CanonicalRequest:
        """See `Adapter.request`.

        A compaction (`…/responses/compact`) is told from a turn by the parameter `compact`.
        """
        fields = present(body)
        if fields.get("type") == "response.create":
            del fields["type"]  # the frame of a socket says what the path of a POST says
        conversation = Conversation()
        if "instructions" in fields:
            conversation.add("system", content_parts(fields.pop("instructions")))
        if isinstance(text := fields.get("input"), str):
            del fields["input"]
            conversation.add("user", text_parts(text))
        conversation.take(take_list(fields, "input"), add_item)
        tools = (*conversation.tools, *known_tools(take_list(fields, "tools")))
        lift(fields, "text", {"format": "response_format", "verbosity": "verbosity"})
        lift(fields, "reasoning", {"effort": "reasoning_effort"})
        name_bookkeeping(fields, target.host)
        params = rename(fields, _NAMES)
        if "tool_choice" in params:
            params["tool_choice"] = openai_tool_choice(params["tool_choice"])
        add_address(params, self.wire, target)
        if _is_compaction(target.path):
            params["compact"] = True
        return conversation.request(self.wire, operation, tools, params)

    def form(self, target: Target, body: JsonObject) -> Form:
        """See `Adapter.form`."""
        return "sse" if body.get("stream") is True and not _is_compaction(target.path) else "whole"

    def ending(
        self,
        form: Form,
        operation: Operation,
        body: bytes,
        choices: int = 1,  # noqa: ARG002  # this wire has one
    ) -> Ending:
        """See `Adapter.ending`: the first of `response.completed`, `.incomplete`, `.failed` and `error`."""
        if operation != "generate":
            return answers.plain(form, body)
        if form == "whole":
            answer = answers.load_object(body)
            return answers.CUT if answer is None else _response_ending(answer)
        for event in answers.events(body):
            data = answers.load_object(event.data)
            if data is None:
                continue
            kind = data.get("type", event.name)
            if kind in ("response.completed", "response.incomplete", "response.failed"):
                response = data.get("response")
                ending = _response_ending(response if isinstance(response, dict) else {})
                return Ending(_TERMINAL[str(kind)], ending.model, ending.usage)
            if kind == "error":
                return Ending("error")
        return answers.CUT

    def error(self, status: int, message: str) -> JsonObject:  # noqa: ARG002  # the body does not name it
        """See `Adapter.error`."""
        return answers.openai_error(message)


_TERMINAL: dict[str, answers.Kind] = {
    "response.completed": "complete",
    "response.incomplete": "length",
    "response.failed": "error",
}
_STATUS: dict[str, answers.Kind] = {
    "completed": "complete",
    "incomplete": "length",
    "failed": "error",
    "cancelled": "error",
    # A background response: the answer is still to be asked for.
    "queued": "cut",
    "in_progress": "cut",
}


def _response_ending(response: JsonObject) -> Ending:
    model = answers.string(response.get("model"))
    usage = answers.usage(response.get("usage"), "input_tokens", "output_tokens", "input_tokens_details")
    if response.get("error") is not None:
        return Ending("error", model, usage)
    if "status" not in response:  # a compaction has none
        return Ending("complete" if isinstance(response.get("output"), list) else "cut", model, usage)
    return Ending(_STATUS.get(str(response["status"]), "cut"), model, usage)


def _is_compaction(path: str) -> bool:
    return path.rstrip("/").endswith("/compact")
