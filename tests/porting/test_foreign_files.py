"""What other tools write: HAR and vcrpy's cassettes as plain exchanges, told by content, errors by place."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from case_tables import fake
from porting.stores import CHAT, NOW, STREAM, chat, export, heard, opened, put, spoil
from rewind_proxy.canonical.model import JsonObject, JsonValue
from rewind_proxy.errors import PortingError
from rewind_proxy.porting import har, safe_yaml, vcr
from rewind_proxy.porting.heard import Heard, Left
from rewind_proxy.porting.sources import Source, source, sources

URL = "https://api.openai.com/v1/chat/completions?x=1"
ASKED, ANSWERED = json.dumps(chat("hello")).encode(), json.dumps(CHAT).encode()
DATE = "Mon, 30 Nov 2026 11:45:03 GMT"
LENGTH: JsonObject = {"name": "Content-Length", "value": "9"}
MISSING = "the body of its {} is not in the file"


def no_flows(file: Path) -> Iterator[str]:
    raise AssertionError(f"{file} is no flow file")


def at(file: Path) -> Source:
    """What a file is, where none holds flows."""
    return source(file, no_flows)


def entry(**more: JsonValue) -> JsonObject:
    """An entry of a HAR file as Chromium writes it."""
    return {
        "startedDateTime": "2026-11-30T11:45:03.250Z",
        "time": 250.4,
        "request": {
            "method": "POST",
            "url": URL,
            "headers": [{"name": ":method", "value": "POST"}, {"name": "Content-Encoding", "value": "zstd"}],
            "postData": {"mimeType": "application/json", "text": ASKED.decode()},
            "bodySize": len(ASKED),
        },
        "response": {
            "status": 200,
            "headers": [
                {"name": "content-type", "value": "application/json"},
                {"name": "content-encoding", "value": "br"},
            ],
            "content": {"size": len(ANSWERED), "mimeType": "application/json", "text": ANSWERED.decode()},
        },
        **more,
    }


def one(document: JsonObject) -> Heard | Left:
    """The one entry of a HAR file."""
    [found] = har.entries({"log": {"creator": {"name": "any"}, "entries": [document]}}, "a.har")
    return found


class TestHar:
    def test_an_entry_is_an_exchange(self) -> None:
        """Method, URL, bodies and times; a coding that a body no longer has is gone from its headers."""
        found = one(entry())
        assert isinstance(found, Heard)
        request = found.request
        assert (request.method, request.host, request.port) == ("POST", "api.openai.com", 443)
        assert (request.path, request.body, request.headers) == ("/v1/chat/completions?x=1", ASKED, ())
        assert (found.status, found.body) == (200, ANSWERED)
        assert found.headers == (("content-type", "application/json"),)
        assert (found.started_at, found.milliseconds) == (NOW, 250)

    @pytest.mark.parametrize("coded", [True, False])
    def test_a_body_in_base64_is_decoded_once(self, coded: bool) -> None:
        """Whether the tool kept it compressed or not, what is recorded is what the client read."""
        body = gzip.compress(ANSWERED) if coded else ANSWERED
        content: JsonObject = {"size": 1, "text": base64.b64encode(body).decode(), "encoding": "base64"}
        headers: JsonValue = [{"name": "content-encoding", "value": "gzip"}]
        found = one(entry(response={"status": 200, "headers": headers, "content": content}))
        assert isinstance(found, Heard)
        assert found.body == body
        assert bool(found.headers) == coded

    def test_the_type_of_a_body_is_that_of_the_answer(self) -> None:
        """Some tools write no headers."""
        content: JsonObject = {"mimeType": "text/event-stream", "text": STREAM}
        found = one(entry(response={"status": 200, "content": content}))
        assert isinstance(found, Heard)
        assert found.headers == (("content-type", "text/event-stream"),)

    def test_a_stream_that_mitmproxy_read_as_latin_1_is_mended(self) -> None:
        """`hardump` of mitmproxy 11 writes the bytes of a stream of events one by one."""
        content: JsonObject = {
            "mimeType": "text/event-stream",
            "text": STREAM.encode().decode("latin-1"),
        }
        entries: list[JsonValue] = [entry(response={"status": 200, "headers": [], "content": content})]
        for name, text in (("mitmproxy", STREAM), ("other", content["text"])):
            [found] = har.entries({"log": {"creator": {"name": name}, "entries": entries}}, "a.har")
            assert isinstance(found, Heard)
            assert found.body.decode() == text

    @pytest.mark.parametrize(
        ("more", "reason"),
        [
            ({"response": {"status": 0}}, "no answer came"),
            (
                {"response": {"status": 200, "content": {"size": 9}}},
                MISSING.format("answer"),
            ),
            (
                {"request": {"method": "POST", "url": URL, "bodySize": 9}},
                MISSING.format("request"),
            ),
            (
                {"request": {"method": "POST", "url": URL, "postData": {"params": [{"name": "a"}]}}},
                MISSING.format("request"),
            ),
            (
                {"request": {"method": "POST", "url": URL, "postData": {"text": ""}, "bodySize": 9}},
                MISSING.format("request"),
            ),
            (
                {"request": {"method": "POST", "url": URL, "headers": [LENGTH]}},
                MISSING.format("request"),
            ),
            (
                {"response": {"status": 200, "content": {"size": 0}, "bodySize": 9}},
                MISSING.format("answer"),
            ),
            (
                {"response": {"status": 200, "headers": [LENGTH], "content": {"size": 0, "text": ""}}},
                MISSING.format("answer"),
            ),
            (
                {"request": {"method": "POST", "url": "https://[x"}},
                "its request names no host",
            ),
            ({"request": {"method": "GET", "url": "data:text/plain,x"}}, "its request names no host"),
            ({"request": 1}, "it has no request and response"),
            (
                {"response": {"status": 200, "content": {"text": "?", "encoding": "base64"}}},
                "a body in it is no base64",
            ),
            (
                {"response": {"status": 200, "content": {"text": "é", "encoding": "base64"}}},
                "a body in it is no base64",
            ),
        ],
    )
    def test_what_is_no_whole_exchange_says_why(self, more: JsonObject, reason: str) -> None:
        """It is counted by its reason and named by its place."""
        assert one(entry(**more)) == Left("a.har, entry 1", reason)

    def test_an_answer_to_head_has_no_body(self) -> None:
        """Its headers tell the length of what GET would bring."""
        request: JsonObject = {"method": "HEAD", "url": "https://api.openai.com/v1/models"}
        answered: JsonObject = {"status": 200, "headers": [LENGTH], "content": {"size": 9}}
        assert isinstance(one(entry(request=request, response=answered)), Heard)

    def test_an_upgrade_is_left_out(self, tmp_path: Path) -> None:
        """The messages of a WebSocket are no model call that can be answered."""
        headers: JsonValue = [{"name": "Upgrade", "value": "websocket"}]
        url = "wss://api.openai.com/v1/responses"
        request: JsonObject = {"method": "GET", "url": url, "headers": headers}
        with opened(tmp_path) as (store, chosen):
            outcome = put(store, chosen, [one(entry(request=request, _webSocketMessages=[]))])
        assert dict(outcome.left) == {"WebSockets are not imported": 1}


def interaction(body: object, string: object, **headers: object) -> dict[str, object]:
    """An interaction of a cassette."""
    return {
        "request": {"method": "POST", "uri": URL, "body": body, "headers": {"accept": ["*/*"]}},
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {
                "Content-Type": ["application/json"],
                "Date": [DATE],
                **headers,
            },
            "body": string if isinstance(string, dict) else {"string": string},
        },
    }


class TestVcrpy:
    @pytest.mark.parametrize(
        "string",
        [
            ANSWERED,
            ANSWERED.decode(),
            {"base64_string": base64.b64encode(ANSWERED).decode()},
            {"string": {"string": ANSWERED}},
        ],
    )
    def test_a_body_is_read_however_it_is_written(self, string: object) -> None:
        """As text, as bytes, in base64; what the answer's own date says is its time."""
        document = {"version": 1, "interactions": [interaction(ASKED, string)]}
        [found] = vcr.entries(document, "a.yaml")
        assert isinstance(found, Heard)
        assert (found.request.body, found.body, found.started_at) == (ASKED, ANSWERED, 1_796_039_103.0)
        assert ("Content-Type", "application/json") in found.headers

    @pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
    def test_a_compressed_answer_is_recorded_decoded(self, compress: object, tmp_path: Path) -> None:
        """Stubs that keep the coding and stubs that undo it give one recording."""
        assert callable(compress)
        name = "gzip" if compress is gzip.compress else "zstd"
        coded = interaction(ASKED, compress(ANSWERED), **{"content-encoding": [name]})
        plain = interaction(ASKED, ANSWERED, **{"content-encoding": [name]})
        with opened(tmp_path) as (store, chosen):
            for digest, document in (("ab" * 32, coded), ("cd" * 32, plain)):
                put(store, chosen, vcr.entries({"version": 1, "interactions": [document]}, "a"), digest)
            first, second = store.store.cassettes()
            assert first.id == second.id
            assert store.store.answer(first).body == ANSWERED

    def test_the_stub_of_older_versions_is_read(self) -> None:
        """For httpx they wrote `content` and `status_code`."""
        document = interaction(ASKED, "")
        document["response"] = {"status_code": 200, "headers": {}, "content": ANSWERED.decode()}
        [found] = vcr.entries({"version": 1, "interactions": [document]}, "a")
        assert isinstance(found, Heard)
        assert (found.status, found.body) == (200, ANSWERED)

    @pytest.mark.parametrize(
        ("document", "reason"),
        [
            ({"request": {}}, "it has no request and response"),
            (interaction(ASKED, 5), "a body in it is neither text nor bytes"),
            (interaction(ASKED, {"base64_string": "x"}), "a body in it is no base64"),
            (interaction(ASKED, {"base64_string": "é"}), "a body in it is no base64"),
            (interaction(ASKED, {"base64_string": "a?Gk="}), "a body in it is no base64"),
            (interaction(ASKED, "", **{"Content-Length": ["9"]}), MISSING.format("answer")),
            ({"request": {"uri": "x", "method": "GET"}, "response": {}}, "its request names no host"),
        ],
    )
    def test_what_is_no_whole_exchange_says_why(self, document: dict[str, object], reason: str) -> None:
        """It is counted by its reason and named by its place."""
        found = list(vcr.entries({"version": 1, "interactions": [document]}, "a.yaml"))
        assert found == [Left("a.yaml, interaction 1", reason)]

    def test_another_format_version_is_refused(self) -> None:
        """The error names the file and both versions."""
        with pytest.raises(PortingError, match=r"^a\.yaml: .* format 2; format 1 is read$"):
            vcr.entries({"version": 2, "interactions": []}, "a.yaml")


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


class TestSafeYaml:
    def test_what_pyyaml_writes_is_read(self) -> None:
        """Texts, bytes, numbers, truth values, null, anchors, and the plain types of Python's tags."""
        text = (
            "a: &x ['012', 012, 1.5, yes, ~, 2026-11-30]\nb: *x\nc: !!binary |\n  aGk=\nd: 'no'\n"
            "e: !!python/unicode 'u'\nf: !!python/tuple [1]\ng: |\n  two\n  lines\n"
        )
        listed = ["012", 12, 1.5, True, None, "2026-11-30"]
        assert safe_yaml.load(text.encode(), "f") == {
            "a": listed,
            "b": listed,
            "c": b"hi",
            "d": "no",
            "e": "u",
            "f": [1],
            "g": "two\nlines\n",
        }

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a: !!python/object/apply:os.system ['x']", r"line 1: the tag .*os\.system' is not read"),
            ("a: 1\nb: !!python/name:os.system x", r"line 2: the tag .* is not read"),
            ("a: !mine {x: 1}", r"line 1: the tag '!mine' is not read"),
            (LAUGHS, r"line 7: more values than any cassette has"),
            ("[" * 400, r"line 1: nested too deeply"),
            ("a: [1", r"not YAML \(line \d"),
            ("a: *b", r"line 1: an alias|not YAML \(line 1"),
            ("a: 1\n---\nb: 2", r"line 2: a second document follows"),
            ("a: 1\na: 2", r"line 2: a key that is no text, or stands there twice"),
            ("? [x]\n: 1", r"line 1: a key that is no text"),
            ("a: \x01", r"not YAML"),
            ("a: 1\nb: !!binary 'a?Gk='", r"line 2: it is no base64"),
        ],
    )
    def test_a_hostile_file_is_refused_with_its_place(self, text: str, message: str) -> None:
        """No object is made, nothing grows past its bound, and the line is named."""
        with pytest.raises(PortingError, match=f"^f: {message}"):
            safe_yaml.load(text.encode(), "f")

    def test_a_huge_file_is_refused_unread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Past the limit nothing is parsed."""
        monkeypatch.setattr(safe_yaml, "MAX_BYTES", 10)
        with pytest.raises(PortingError, match="larger than"):
            safe_yaml.load(b"a: 12345678", "f")


ODD = st.one_of(
    st.none(),
    st.integers() | st.floats(),
    st.text(max_size=4) | st.sampled_from(["\ud800", "base64", "https://[", "gzip", "2026-13-01"]),
    st.binary(max_size=4),
    st.sampled_from([[], {}, [[]], [{"name": 1}], {"string": []}]),
)


@settings(deadline=None)
@given(data=st.data(), value=ODD)
def test_no_file_of_others_is_more_than_refused(data: st.DataObject, value: object) -> None:
    """Whatever stands wherever: an exchange, or why there is none, or an error that names the file."""
    cassette: dict[str, Any] = {"version": 1, "interactions": [interaction(ASKED, ANSWERED)]}
    archive: dict[str, Any] = {"log": {"entries": [entry()]}}
    spoil(cassette, value, data)
    spoil(archive, value, data)
    for read, document in ((vcr.entries, cassette), (har.entries, archive)):
        try:
            found = list(read(document, "file"))
        except PortingError as error:
            said = str(error)
        else:
            said = "" if all(isinstance(each, Heard | Left) for each in found) else "something else"
        assert not said or said.startswith("file: ")


class TestTelling:
    """A name says nothing; the content does."""

    HAR = json.dumps({"log": {"entries": [entry()]}})

    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            (HAR, "har"),
            ("\ufeff" + json.dumps(json.loads(HAR), indent=2), "har"),
            (json.dumps({"version": 1, "interactions": []}), "vcrpy"),
            ("interactions: []\nversion: 1\n", "vcrpy"),
            ("# by hand\nversion: 1\ninteractions:\n- request: {}\n", "vcrpy"),
        ],
    )
    def test_a_file_is_told_by_its_content(self, content: str, kind: str, tmp_path: Path) -> None:
        """Whatever it is called."""
        file = tmp_path / "x.txt"
        file.write_text(content, encoding="utf-8")
        assert at(file).format == kind

    def test_flows_are_handed_to_their_reader(self, tmp_path: Path) -> None:
        """They begin as tnetstrings do; a line that is none names the flow."""
        file = tmp_path / "x.json"
        file.write_bytes(b"2441:8:response;3:abc")
        lines = ['{"left": "no answer came"}', "nonsense"]
        entries = source(file, lambda _: lines).entries
        assert next(entries) == Left(f"{file}, flow 1", "no answer came")
        with pytest.raises(PortingError, match=r"flow 2: it could not be read"):
            next(entries)

    @pytest.mark.parametrize("pretty", [True, False])
    def test_our_own_text_is_one_document_or_a_line_each(self, pretty: bool, tmp_path: Path) -> None:
        """Lines that a merge put out of order come in the order of their times."""
        with opened(tmp_path) as (store, chosen):
            put(store, chosen, [heard(chat("a"), at=NOW + 9), heard(chat("b"), at=NOW + 99)])
            first, second = export(store)
        file = tmp_path / "x"
        if pretty:
            file.write_text(first.text, encoding="utf-8")
            assert [getattr(each, "recorded_at", 0) for each in at(file).entries] == [NOW + 9.25]
        else:
            lines = [json.dumps(each.document) for each in (second, first)]
            file.write_text("\n".join(lines), encoding="utf-8")
            assert [getattr(each, "recorded_at", 0) for each in at(file).entries] == [NOW + 9.25, NOW + 99.25]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"hello", "is none of what Rewind reads"),
            (b"", "is none of what Rewind reads"),
            (b"{}", "is none of what Rewind reads"),
            (b"[1]", "is none of what Rewind reads"),
            (b'{\n"a": }', r"not JSON \(line 2, column 6\)"),
            (b'{"a": 1, "a": 2}', "a member is given twice"),
            (b'{"a": NaN}', "NaN is no JSON"),
            (b"[" * 100_000, "nested too deeply"),
            (b'{"a": ' + b"1" * 5000 + b"}", "a number in it is too long"),
            (b'{"a":\n"\xff"}', r"not UTF-8 \(line 2\)"),
            (b'{"log": {}}', 'no HAR file: "log" has no "entries"'),
            (b'{"rewind": 2, "request": {}}', "written in text format 2, this Rewind reads 1"),
            (b'{"rewind": 1, "request": {}}', '"answer" is missing or no object'),
            (b'{"rewind": 1, "request": {}, "answer": {}}', '"url" has no host'),
            (b'{"rewind": 1, "request": {"body": 1e999}}', "past the range of a double"),
            (b'{"rewind": 1, "request": ' + b"[" * 500 + b"]" * 500 + b"}", "nested too deeply"),
        ],
    )
    def test_an_error_names_file_and_place(self, content: bytes, message: str, tmp_path: Path) -> None:
        """And says what stands in the way."""
        file = tmp_path / "x.har"
        file.write_bytes(content)
        with pytest.raises(PortingError, match=message) as raised:
            list(at(file).entries)
        assert str(file) in str(raised.value)

    def test_a_version_that_is_no_number_is_said(self) -> None:
        """In words that stand in a sentence."""
        said = r"^a\.yaml: a cassette of vcrpy that names no format by number; format 1 is read$"
        with pytest.raises(PortingError, match=said):
            list(vcr.entries({"version": "one", "interactions": []}, "a.yaml"))

    @pytest.mark.parametrize(
        "content",
        [
            "interactions: []\nversion: {}\n",
            '{{"interactions": [], "version": "{}"}}',
            '{{"rewind": "{}", "request": {{}}}}',
        ],
    )
    def test_an_error_quotes_no_value(self, content: str, tmp_path: Path) -> None:
        """Anything may stand anywhere."""
        secret = fake("sk-proj-", 40)
        file = tmp_path / "x"
        file.write_text(content.format(secret))
        with pytest.raises(PortingError) as raised:
            list(at(file).entries)
        assert secret not in str(raised.value)

    def test_a_missing_file_and_an_empty_folder_are_errors(self, tmp_path: Path) -> None:
        """Both are named."""
        for path in (tmp_path / "missing", tmp_path):
            with pytest.raises(PortingError, match=str(path)):
                sources(path, no_flows)
