"""Gemini's generateContent family: Google AI, Vertex, and Code Assist, which wraps it once more."""

from __future__ import annotations

from urllib.parse import unquote

from rewind_proxy.canonical.history import fold
from rewind_proxy.canonical.model import (
    CanonicalRequest,
    Ending,
    Form,
    JsonObject,
    JsonValue,
    Operation,
    Target,
    Usage,
    Volatile,
    Wire,
)
from rewind_proxy.wire import answers
from rewind_proxy.wire.address import add_address
from rewind_proxy.wire.conversation import BILLING_LINE
from rewind_proxy.wire.gemini_content import Contents, add_content, system_parts
from rewind_proxy.wire.gemini_fields import function_tools, name_fields, name_model, unwrapped
from rewind_proxy.wire.gemini_names import camel
from rewind_proxy.wire.parameters import present, take_list


class Gemini:
    """The adapter of `…/models/{model}:{method}` and `/v1internal:{method}`."""

    wire: Wire = "gemini"
    volatile = Volatile(
        system_prefixes=BILLING_LINE,
        # Code Assist names the prompt, the session and who pays; labels are for the bill.
        params=frozenset({"labels", "user_prompt_id", "session_id", "project"}),
    )

    def request(self, target: Target, operation: Operation, body: JsonObject) -> CanonicalRequest:
        """See `Adapter.request`."""
        path = unquote(target.path)
        fields = unwrapped(unwrapped(camel(present(body)), "request"), "generateContentRequest")
        conversation = Contents()
        if "systemInstruction" in fields:
            conversation.add("system", system_parts(fields.pop("systemInstruction")))
        for name in ("contents", "content"):
            if isinstance(value := fields.get(name), dict | str):
                fields[name] = [value]  # protobuf JSON takes one in place of a list
            conversation.take(take_list(fields, name), add_content)
        tools = fold(take_list(fields, "tools"), function_tools, tuple, _add_tools)
        name_fields(fields)
        name_model(fields)
        add_address(fields, self.wire, target)
        if ":streamGenerateContent" in path:
            fields["stream"] = True
        return conversation.request(self.wire, operation, tools, fields)

    def form(self, target: Target, body: JsonObject) -> Form:  # noqa: ARG002  # the path tells
        """See `Adapter.form`."""
        if not unquote(target.path).rstrip("/").endswith(":streamGenerateContent"):
            return "whole"
        return "sse" if ("alt", "sse") in target.query or ("$alt", "sse") in target.query else "json-array"

    def ending(self, form: Form, operation: Operation, body: bytes, choices: int = 1) -> Ending:
        """See `Adapter.ending`.

        This wire has no terminal event: a stream is complete when the last word on each candidate asked for
        carries a finish reason (or the prompt was blocked). What is one JSON text is whole when it parses.
        """
        if operation != "generate":
            return answers.plain(form, body)
        chunks: list[JsonValue]
        if form == "sse":
            chunks = [answers.load_object(event.data) for event in answers.events(body)]
        elif form == "json-array":
            chunks = answers.load_list(body) or []
        else:
            chunks = [answers.load_object(body)]
        return _ending(answers.objects(chunks), choices if form == "sse" else 1)

    def error(self, status: int, message: str) -> JsonObject:
        """See `Adapter.error`."""
        error: JsonObject = {
            "code": status,
            "message": message,
            "status": _ERRORS.get(status, "INVALID_ARGUMENT"),
        }
        return {"error": error}


_ERRORS = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 500: "INTERNAL"}


def _add_tools(done: tuple[JsonObject, ...], tools: list[JsonValue], first: int) -> tuple[JsonObject, ...]:
    return (*done, *function_tools(tools[first:]))


def _ending(chunks: list[JsonObject], choices: int) -> Ending:
    model: str | None = None
    usage: Usage | None = None
    reasons: dict[str, JsonValue] = {}
    blocked = False
    for chunk in chunks:
        inner = chunk.get("response")
        if isinstance(inner, dict) and "candidates" not in chunk:
            chunk = inner  # noqa: PLW2901  # Code Assist wraps each answer
        if chunk.get("error") is not None:
            return Ending("error", model, usage)
        model = answers.string(chunk.get("modelVersion")) or model
        usage = _usage(chunk.get("usageMetadata")) or usage
        feedback = chunk.get("promptFeedback")
        blocked = blocked or (isinstance(feedback, dict) and feedback.get("blockReason") is not None)
        for candidate in answers.objects(chunk.get("candidates")):
            reason = answers.string(candidate.get("finishReason"))
            unknown = reason == "FINISH_REASON_UNSPECIFIED"
            reasons[str(candidate.get("index", 0))] = None if unknown else reason
    ended = len(reasons) >= choices and all(reasons.values())
    if not (ended or (blocked and not reasons)):
        return Ending("cut", model, usage)
    return Ending("length" if "MAX_TOKENS" in reasons.values() else "complete", model, usage)


def _usage(value: JsonValue) -> Usage | None:
    if not isinstance(value, dict):
        return None
    read, used, written, thought, cached = (
        answers.count(value.get(f"{name}TokenCount"))
        for name in ("prompt", "toolUsePrompt", "candidates", "thoughts", "cachedContent")
    )
    return Usage(read + used, written + thought, cached)
