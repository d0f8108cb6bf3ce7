"""Agent-like request bodies of a wanted size: system prompt, tools, a history that grows turn by turn.

Two agents of different `seed` share no text leaf of any length, so that a body is new to every cache; the
same agent one turn later sends all it sent before. `responses` is laid out as Codex does, `anthropic` as
Claude Code does.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from typing import Literal

from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.matching.reading import RawRequest

Wire = Literal["responses", "anthropic"]
SIZES = {"4 KB": 4 << 10, "64 KB": 64 << 10, "1 MB": 1 << 20}
HOSTS: dict[Wire, str] = {"responses": "api.openai.com", "anthropic": "api.anthropic.com"}
PATHS: dict[Wire, str] = {"responses": "/v1/responses", "anthropic": "/v1/messages"}
TOOLS = 20
_WORDS = (
    "the parser reads each token and keeps its place so that an error names the line where it began while a "
    "second pass folds constants removes dead branches and writes the module back only when its checksum "
    "differs from what was there before which makes repeated builds cheap on every machine we tried"
).split()


class Agent:
    """One session of an agent: `body(turns)` is what it sends on that turn."""

    def __init__(self, seed: int, size: int, wire: Wire = "responses") -> None:
        self.wire: Wire = wire
        self._random = random.Random(seed)  # bodies are to be repeatable, not secret
        self.home = f"/home/{self._word()}{seed}"
        self.cwd = f"{self.home}/work/{self._word()}"
        self.system = self._system(size // 8)
        self.tools = [self._tool(index) for index in range(min(TOOLS, max(2, size // 2048)))]
        self._turns: list[list[JsonObject]] = []
        self.turns = 0
        while len(self.encoded(self.turns)) < size:
            self.turns += 1 + self.turns // 8

    def encoded(self, turns: int) -> bytes:
        """The body of a turn as clients write it: UTF-8, no escapes beyond need."""
        return json.dumps(self.body(turns), ensure_ascii=False, separators=(",", ":")).encode()

    def request(self, turns: int | None = None, **changes: JsonValue) -> RawRequest:
        """The whole request of a turn, the last one by default; `changes` are members of the body."""
        return self._request(self.body(self.turns if turns is None else turns) | changes)

    def _request(self, body: JsonObject) -> RawRequest:
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = (
            ("host", HOSTS[self.wire]),
            ("content-type", "application/json"),
            ("authorization", "Bearer " + hashlib.sha256(b"bench").hexdigest()),
            ("user-agent", "bench/1.0"),
        )
        return RawRequest("POST", HOSTS[self.wire], 443, PATHS[self.wire], headers, data)

    def asking(self, question: int, **changes: JsonValue) -> RawRequest:
        """The last turn with another question at its end, so that any number of bodies share a history."""
        kept = len(self._turns)
        body = self.body(self.turns)
        field = "input" if self.wire == "responses" else "messages"
        items = body[field]
        assert isinstance(items, list)
        items.append(self._said("user", f"Question {question}: why does line {question * 7} of it fail?"))
        assert kept == len(self._turns)
        return self._request(body | changes)

    def body(self, turns: int) -> JsonObject:
        """The body of a turn."""
        while len(self._turns) < turns:
            self._turns.append(list(self._turn(len(self._turns))))
        items: list[JsonValue] = [self._said("user", self._task())]
        items += [item for turn in self._turns[:turns] for item in turn]
        if self.wire == "responses":
            return {
                "model": "gpt-5",
                "instructions": self.system,
                "input": items,
                "tools": [{"type": "function", "strict": False, **tool} for tool in self.tools],
                "tool_choice": "auto",
                "parallel_tool_calls": True,
                "reasoning": {"effort": "medium"},
                "store": False,
                "stream": True,
                "include": ["reasoning.encrypted_content"],
                "prompt_cache_key": self._id("cache", 0),
            }
        return {
            "model": "claude-sonnet-5",
            "max_tokens": 32000,
            "system": [{"type": "text", "text": self.system, "cache_control": {"type": "ephemeral"}}],
            "messages": items,
            "tools": [
                {"name": t["name"], "description": t["description"], "input_schema": t["parameters"]}
                for t in self.tools
            ],
            "metadata": {"user_id": self._id("user", 0)},
            "stream": True,
        }

    # -- pieces

    def _word(self) -> str:
        return self._random.choice(_WORDS)

    def _prose(self, length: int) -> str:
        lines: list[str] = []
        while length > 0:
            at, count = self._random.randrange(len(_WORDS)), min(14, 1 + length // 6)
            line = " ".join((_WORDS + _WORDS)[at : at + count]) + str(self._random.randrange(10**6))
            lines.append(line)
            length -= len(line) + 2
        return ".\n".join(lines) + "."

    def _id(self, what: str, index: int) -> str:
        return f"{what}_{hashlib.sha256(f'{self.cwd} {what} {index}'.encode()).hexdigest()[:24]}"

    def _path(self) -> str:
        return f"{self.cwd}/src/{self._word()}/{self._word()}_{self._random.randrange(10**6)}.py"

    def _system(self, length: int) -> str:
        return (
            f"You are a coding agent.\nWorking directory: {self.cwd}\nToday's date: 2026-03-0"
            f"{self._random.randrange(1, 9)}\n" + self._prose(length)
        )

    def _task(self) -> str:
        return f"Please read {self.cwd}/README.md and make the tests pass — all of them."

    def _tool(self, index: int) -> JsonObject:
        members: JsonObject = {
            f"{self._word()}_{number}": {"type": "string", "description": self._prose(60)}
            for number in range(3)
        }
        return {
            "name": f"{self._word()}_{index}",
            "description": self._prose(120),
            "parameters": {"type": "object", "properties": members, "required": [*members]},
        }

    def _said(self, role: str, text: str) -> JsonObject:
        if self.wire == "responses":
            kind = "input_text" if role == "user" else "output_text"
            return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        return {"role": role, "content": [{"type": "text", "text": text}]}

    def _turn(self, index: int) -> Iterator[JsonObject]:
        path = self._path()
        arguments: JsonObject = {"command": ["bash", "-lc", f"sed -n 1,80p {path}"], "workdir": self.cwd}
        result = self._result(index, path)
        call = self._id("call", index)
        if self.wire == "responses":
            yield {
                "type": "function_call",
                "name": "shell",
                "arguments": json.dumps(arguments),
                "call_id": call,
            }
            yield {"type": "function_call_output", "call_id": call, "output": result}
            if index % 3 == 2:
                yield self._said("assistant", self._prose(200))
            return
        yield {
            "role": "assistant",
            "content": [
                {"type": "text", "text": self._prose(120)},
                {"type": "tool_use", "id": call, "name": "shell", "input": arguments},
            ],
        }
        yield {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": call, "content": result, "is_error": False}],
        }

    def _result(self, index: int, path: str) -> str:
        match index % 4:
            case 0:
                return self._code()
            case 1:
                return json.dumps(
                    {
                        "path": path,
                        "matches": [
                            {"line": self._random.randrange(900), "text": self._prose(50)} for _ in range(8)
                        ],
                        "elapsed": 0.25,
                    }
                )
            case 2:
                return f"{path}:12: error: {self._prose(80)}\n" + "\n".join(
                    f"{self._path()}: {self._word()}" for _ in range(8)
                )
            case _:
                seconds = self._random.randrange(10)
                return f"Exit code: 0\nWall time: 0.{seconds} seconds\nOutput:\n{self._prose(700)}"

    def _code(self) -> str:
        return "\n".join(
            f"def {self._word()}_{self._random.randrange(10**6)}(self, {self._word()}: str) -> int:\n"
            f'    """{self._prose(40)}"""\n'
            f"    return self.{self._word()}[{self._random.randrange(100)}] * len({self._word()})\n"
            for _ in range(8)
        )
