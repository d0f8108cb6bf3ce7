"""The interoperable hash, rule by rule (DESIGN §13)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from rewind_proxy.canonical.core_v3 import HASH_VERSION, canonical, request_hash, state_hash
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import CoreHashError

DROPPED = (
    "request_id idempotency_key timestamp created created_at latency_ms traceparent tracestate trace_id "
    "span_id user-agent user_agent retry_count sdk_version x-api-key api_key apikey authorization stream"
).split()
IDS = ["id", "message_id", "tool_call_id", "tool_use_id", "call_id", "correlation_id"]
PARAMETERS = ["response_format", "temperature", "top_p", "top_k", "seed", "max_tokens", "tool_choice"]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NAMES = st.sampled_from(["a", "b", "role", "content", "é", "😀", "\ufb33", "id", "call_id"]) | TEXT
JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
)


def model(**members: JsonValue) -> JsonObject:
    request: JsonObject = {"kind": "model", "provider": "openai", "model_id": "m", "messages": []}
    return request | members


def said(value: JsonValue) -> JsonValue:
    """`value` as it is hashed inside the messages of a request."""
    return canonical(model(messages=value))["messages"]


def rebuilt(value: JsonValue, change: Callable[[JsonObject], JsonObject]) -> JsonValue:
    """`value` with `change` made to every object in it."""
    if isinstance(value, list):
        return [rebuilt(item, change) for item in value]
    if isinstance(value, dict):
        return change({name: rebuilt(item, change) for name, item in value.items()})
    return value


class TestHash:
    @pytest.mark.parametrize(
        ("request_", "known"),
        [
            (
                {
                    "kind": "model",
                    "provider": "anthropic",
                    "model_id": "claude-sonnet-5",
                    "messages": [{"role": "user", "content": "summarise this"}],
                },
                "faba1bab0b866b412ff8992582fc2a4bc0be5864895e9790dc4e4215fdb3301d",
            ),
            (
                {"kind": "clock", "counter": 7},
                "7b88a74da03965e24c515e7b86ae4253a23797bca23cdc7bc5c4d30b3c91fbd6",
            ),
            (
                {"kind": "rng", "counter": 0},
                "a5c5a01dcd5a6ba8bacb65235f8c87f0f4b39f496629999fa2bc4aa78bd27cc5",
            ),
            (
                {
                    "kind": "tool",
                    "tool_name": "web_search",
                    "args": {"query": "langgraph replay", "limit": 10},
                },
                "e1d4d955c5097ca717c627f4fe2c1e2bf48a53bac0d8a28edef67f61b800a85d",
            ),
        ],
    )
    def test_known_values(self, request_: JsonObject, known: str) -> None:
        """The values that the library itself gives."""
        assert request_hash(request_) == known

    def test_how_it_is_made(self) -> None:
        """The version, a zero byte and the canonical JSON of the canonical object, as bare hex."""
        request = model(messages=["a  b"], junk=1)
        made = b"3\0" + b'{"kind":"model","messages":["a b"],"model_id":"m","provider":"openai"}'
        assert HASH_VERSION == 3
        assert request_hash(request) == hashlib.sha256(made).hexdigest()

    @given(JSON)
    def test_state(self, value: JsonValue) -> None:
        """A state is any value, normalised by the same rules, and its hash says which digest it is."""
        normal = canonical({"kind": "clock", "counter": value}).get("counter")
        assert state_hash(value) == "sha256:" + hashlib.sha256(b"3\0" + rfc8785.dumps(normal)).hexdigest()

    def test_a_state_is_no_request(self) -> None:
        """No member of a state is chosen or taken raw for what its name means in a request."""
        assert state_hash({"kind": "clock", "counter": 1}) != state_hash(
            {"kind": "clock", "counter": 1, "x": 2}
        )
        assert state_hash({"provider": "a  b"}) == state_hash({"provider": "a b"})


class TestMembers:
    @pytest.mark.parametrize("kind", ["clock", "rng", "human", "env"])
    def test_other_kinds(self, kind: str) -> None:
        """Kinds beside model and tool have a counter and nothing else."""
        assert canonical({"kind": kind, "counter": 3, "args": 1, "provider": "p"}) == {
            "kind": kind,
            "counter": 3,
        }

    def test_tool(self) -> None:
        """A tool call is its name and arguments."""
        request: JsonObject = {"kind": "tool", "tool_name": "t", "args": {}, "counter": 1, "provider": "p"}
        assert canonical(request) == {"kind": "tool", "tool_name": "t", "args": {}}

    def test_model(self) -> None:
        """A model call is these members, flat; all others are ignored."""
        members: JsonObject = {
            "kind": "model",
            "provider": "p",
            "model_id": "m",
            "messages": [],
            "system_prompt_sha": "sha256:0",
            "tool_schemas": [],
            **dict.fromkeys(PARAMETERS, 1),
        }
        assert canonical(members | {"stop": ["x"], "args": 1, "counter": 1, "user": "u"}) == members

    @pytest.mark.parametrize("name", ["system_prompt_sha", "tool_schemas", *PARAMETERS])
    def test_each_optional_member_counts(self, name: str) -> None:
        """Each of them changes the hash where it is present; null is absent."""
        assert request_hash(model(**{name: 0})) != request_hash(model())
        assert request_hash(model(**{name: None})) == request_hash(model())

    @pytest.mark.parametrize("kind", [None, "models", "MODEL", 1, [], {}])
    def test_unknown_kinds(self, kind: JsonValue) -> None:
        """A kind that is none of these has no hash, and the error lists them."""
        with pytest.raises(CoreHashError, match="model, tool, clock, rng, human, env"):
            request_hash({"kind": kind, "counter": 1})

    @pytest.mark.parametrize("name", ["provider", "model_id", "system_prompt_sha"])
    def test_raw_members(self, name: str) -> None:
        """What names something goes in as it is."""
        raw = " e\u0301  x\r\n"
        assert canonical(model(**{name: raw}))[name] == raw

    def test_raw_tool_name(self) -> None:
        """So does the name of the tool that is called."""
        assert canonical({"kind": "tool", "tool_name": "a  b "})["tool_name"] == "a  b "

    def test_other_members_are_normalised(self) -> None:
        """The rest is text-normalised, at any depth."""
        value: JsonValue = [{"x": ["a  b"]}]
        for name in ("messages", "tool_schemas", *PARAMETERS):
            assert canonical(model(**{name: value}))[name] == [{"x": ["a b"]}]
        assert canonical({"kind": "tool", "args": {"x": "a  b"}})["args"] == {"x": "a b"}
        assert canonical({"kind": "env", "counter": "a  b"})["counter"] == "a b"

    def test_names_are_untouched(self) -> None:
        """The name of a member is never normalised."""
        names: JsonObject = {"e\u0301": 1, "a  b": 2, "c\r\n": 3, "": 4}
        assert said(names) == names

    def test_nothing_is_nothing(self) -> None:
        """Null members go; nulls in arrays, empty texts, arrays and objects stay."""
        assert said([{"a": None, "b": [None, "", [], {"c": None}]}]) == [{"b": [None, "", [], {}]}]

    @pytest.mark.parametrize("name", DROPPED)
    def test_dropped_members(self, name: str) -> None:
        """What differs from one sending to the next goes at any depth, in any case, whatever it holds."""
        for spelt in (name, name.upper(), name.title()):
            assert said([{"x": {spelt: {"id": "1"}, "y": [{spelt: 1}]}}]) == [{"x": {"y": [{}]}}]

    def test_dropped_by_the_whole_name(self) -> None:
        """A name that only holds one of these stays, and so does one that differs by more than case."""
        names: JsonObject = {"timestamps": 1, "my_stream": 2, "user agent": 3, "request-id": 4}
        assert said(names) == names

    def test_lower_case_is_unicode(self) -> None:
        """Names are lower-cased as JavaScript does, where the Kelvin sign is a `k` too."""
        assert said({"api_\u212aey": 1, "API\u212aEY": 2}) == {}


class TestTools:
    def test_sorted_by_name(self) -> None:
        """Tools are sorted by name in UTF-16 units, where 😀 (D83D …) comes before U+FF21."""
        names = ["B", "a", "é", "😀", "\uff21"]
        tools: list[JsonValue] = [{"name": name} for name in reversed(names)]
        assert canonical(model(tool_schemas=tools))["tool_schemas"] == [{"name": name} for name in names]

    def test_sorted_by_the_raw_name(self) -> None:
        """The name that sorts is the one before normalisation."""
        tools: list[JsonValue] = [{"name": "a!"}, {"name": "a \u2003\u2003"}]
        assert canonical(model(tool_schemas=tools))["tool_schemas"] == [{"name": "a"}, {"name": "a!"}]

    def test_without_a_name(self) -> None:
        """What has no name comes first, in the order sent."""
        tools: list[JsonValue] = [{"name": "a"}, {"type": "z"}, 5, {"name": 3}]
        shown = canonical(model(tool_schemas=tools))["tool_schemas"]
        assert shown == [{"type": "z"}, 5, {"name": 3}, {"name": "a"}]

    def test_no_other_array_is_sorted(self) -> None:
        """Tools inside another member, and tools that are no list, stay as they are."""
        tools: list[JsonValue] = [{"name": "b"}, {"name": "a"}]
        assert said(tools) == tools
        assert canonical(model(tool_schemas={"x": tools}))["tool_schemas"] == {"x": tools}

    @given(st.data())
    def test_order_never_counts(self, data: st.DataObject) -> None:
        """Tools in any order give one hash, also where ids in them are numbered."""
        names = data.draw(st.lists(TEXT, unique=True, max_size=5))
        tools: list[JsonValue] = [{"name": name, "id": data.draw(st.sampled_from("xyz"))} for name in names]
        turned = data.draw(st.permutations(tools))
        assert request_hash(model(tool_schemas=turned)) == request_hash(model(tool_schemas=tools))


class TestIds:
    @pytest.mark.parametrize("name", IDS)
    def test_numbered(self, name: str) -> None:
        """Ids become their number by first appearance, equal ones alike."""
        assert said([{name: "toolu_x"}, {name: "b"}, {name: "toolu_x"}]) == [
            {name: "call_0"},
            {name: "call_1"},
            {name: "call_0"},
        ]

    def test_one_count_for_all_names(self) -> None:
        """A call and its result are linked whatever either calls its id."""
        assert said([{"id": "x"}, {"call_id": "y"}, {"tool_use_id": "x"}]) == [
            {"id": "call_0"},
            {"call_id": "call_1"},
            {"tool_use_id": "call_0"},
        ]

    def test_raw_ids(self) -> None:
        """Ids are told apart as they are, before normalisation, the empty one too."""
        assert said([{"id": "é"}, {"id": "e\u0301"}, {"id": "a "}, {"id": "a"}, {"id": ""}]) == [
            {"id": f"call_{number}"} for number in range(5)
        ]

    def test_what_looks_numbered(self) -> None:
        """An id that is spelled like a number of ours is numbered like any other."""
        assert said([{"id": "call_1"}, {"id": "call_0"}]) == [{"id": "call_0"}, {"id": "call_1"}]

    def test_only_strings_under_these_names(self) -> None:
        """Other values and other names stay, though their case is all that differs."""
        value: list[JsonValue] = [{"id": 7, "call_id": ["x"], "ID": "x", "Call_Id": "y", "file_id": "z"}]
        assert said(value) == value

    def test_inside_an_id(self) -> None:
        """Where an id's member holds an object, as a JSON schema does, the ids in that are numbered."""
        assert said({"id": {"type": "string", "id": "x"}}) == {"id": {"type": "string", "id": "call_0"}}

    def test_dropped_ids_do_not_count(self) -> None:
        """What is dropped takes no number."""
        assert said([{"stream": {"id": "a"}, "x": {"id": "b"}}]) == [{"x": {"id": "call_0"}}]

    def test_order_of_the_members(self) -> None:
        """Messages are numbered first, then tools, then the parameters in their order, however sent."""
        names = ["messages", "tool_schemas", *PARAMETERS]
        members: JsonObject = {name: [{"id": f"of {name}"}] for name in reversed(names)}
        shown = canonical(members | {"kind": "model"})
        assert [shown[name] for name in names] == [[{"id": f"call_{number}"}] for number in range(len(names))]

    def test_order_inside_an_object(self) -> None:
        """Inside an object the members are visited in the order of their names in UTF-16 units."""
        sent: JsonObject = {"\ufb33": {"id": "c"}, "😀": {"id": "b"}, "call_id": "a"}
        assert said(sent) == {"call_id": "call_0", "😀": {"id": "call_1"}, "\ufb33": {"id": "call_2"}}

    def test_order_of_the_tools(self) -> None:
        """Tools are sorted before their ids are numbered."""
        tools: list[JsonValue] = [{"name": "b", "id": "x"}, {"name": "a", "id": "y"}]
        assert canonical(model(tool_schemas=tools))["tool_schemas"] == [
            {"name": "a", "id": "call_0"},
            {"name": "b", "id": "call_1"},
        ]


class TestLaws:
    @given(JSON, st.text(max_size=3))
    def test_renaming_ids(self, value: JsonValue, prefix: str) -> None:
        """Other ids that link the same things give the same hash."""

        def rename(members: JsonObject) -> JsonObject:
            return {
                name: f"{prefix}{item}" if name in IDS and isinstance(item, str) else item
                for name, item in members.items()
            }

        assert state_hash(rebuilt(value, rename)) == state_hash(value)

    def test_linking_counts(self) -> None:
        """Which id is where still counts."""
        assert said([{"id": "a"}, {"id": "a"}]) != said([{"id": "a"}, {"id": "b"}])

    @given(JSON)
    def test_order_of_names(self, value: JsonValue) -> None:
        """The order in which members are sent never counts."""
        turned = rebuilt(value, lambda members: dict(reversed(members.items())))
        assert state_hash(turned) == state_hash(value)

    @given(JSON, st.sampled_from(DROPPED), JSON)
    def test_noise_at_any_depth(self, value: JsonValue, name: str, noise: JsonValue) -> None:
        """Null members, and members that are dropped, may be added to every object."""
        noisy = rebuilt(value, lambda members: {name.title(): noise, "absent": None} | members)
        assert state_hash(noisy) == state_hash(value)

    @given(JSON)
    def test_input_is_left_alone(self, value: JsonValue) -> None:
        """Hashing changes nothing in what was given."""
        before = repr(value)
        state_hash(value)
        assert repr(value) == before


class TestNumbers:
    @pytest.mark.parametrize(
        ("number", "same"),
        [
            (1.0, 1),
            (-0.0, 0),
            (2**53 + 1, 2.0**53),
            (-(2**53) - 1, -(2.0**53)),
            (12345678901234567890, 12345678901234567000),
            (10**21, 1e21),
        ],
    )
    def test_doubles(self, number: float, same: float) -> None:
        """A number is the double that JavaScript reads: integers past 2^53 are rounded, as there."""
        assert state_hash([number]) == state_hash([same])

    def test_integers_and_truth(self) -> None:
        """1 and true, 0 and false stay apart."""
        assert state_hash(1) != state_hash(True)
        assert state_hash(0) != state_hash(False)

    @pytest.mark.parametrize(
        "value",
        [float("nan"), float("inf"), float("-inf"), 10**400, -(10**400), "\ud800", "a\udfff", {"\ud800": 1}],
    )
    def test_without_a_hash(self, value: JsonValue) -> None:
        """What is no finite double and no Unicode has no hash, and the error does not quote the value."""
        for state in (value, [value], {"x": value}):
            with pytest.raises(CoreHashError, match="no interoperable hash") as caught:
                state_hash(state)
            assert caught.value.__cause__ is None
        for name in ("model_id", "messages"):
            with pytest.raises(CoreHashError):
                request_hash(model(**{name: value}))

    def test_dropped_before_it_is_refused(self) -> None:
        """What is dropped is not looked at."""
        assert state_hash({"timestamp": float("nan")}) == state_hash({})

    def test_too_deep(self) -> None:
        """Nesting that Python cannot follow is an error of ours, not a crash."""
        value: JsonValue = "x"
        for _ in range(100_000):
            value = [value]
        with pytest.raises(CoreHashError, match="nested too deeply"):
            state_hash(value)
        while isinstance(value, list):  # or freeing it recurses as deeply
            value = value.pop()
