"""Credentials in another writing: escaped, split by what is not seen, fullwidth, in base64."""

from __future__ import annotations

import base64

import pytest

from case_tables import fake
from rewind_proxy.canonical.model import JsonObject
from rewind_proxy.canonical.redact import MARK, Redactor
from rewind_proxy.canonical.redaction.concealed import revealed

REDACTOR = Redactor()
KEY = fake("sk-ant-api03-", 60)
WIDE = "".join(chr(ord(letter) + 0xFEE0) for letter in KEY)
BOLD = "".join(
    chr(0x1D41A + ord(letter) - ord("a")) if letter.islower() and letter.isascii() else letter
    for letter in KEY
)
WRITINGS = {
    "percent": KEY.replace("-", "%2D"),
    "percent in lower case": KEY.replace("-", "%2d"),
    "percent, every character": "".join(f"%{ord(letter):02X}" for letter in KEY),
    "percent, twice": KEY.replace("-", "%252D"),
    "entity": KEY.replace("-", "&#45;"),
    "hexadecimal entity": KEY.replace("-", "&#x2D;"),
    "escape of JSON that is cut": KEY.replace("-", "\\u002d"),
    "zero-width space": KEY[:10] + "\u200b" + KEY[10:],
    "zero-width everywhere": "\u2060".join(KEY),
    "byte order mark": KEY[:2] + "\ufeff" + KEY[2:],
    "soft hyphen": KEY[:30] + "\u00ad" + KEY[30:],
    "hyphens that do not break": KEY.replace("-", "\u2011"),
    "fullwidth": WIDE,
    "bold": BOLD,
}


@pytest.mark.parametrize("around", ["{}", 'use "{}", please', "/v1/{}/x?a=1", "\n{}\n", "é {}", "a {} b {}"])
@pytest.mark.parametrize("writing", WRITINGS.values(), ids=WRITINGS.keys())
def test_a_key_in_another_writing_goes_whole(writing: str, around: str) -> None:
    """Nothing of it stays, and nothing beside it goes."""
    assert REDACTOR.text(around.replace("{}", writing)) == around.replace("{}", MARK)


def test_another_writing_of_a_name_goes() -> None:
    """As the plain one."""
    assert REDACTOR.value({WIDE: 1}) == {MARK: 1}


@pytest.mark.parametrize(
    "text",
    [
        'printf("%2d %4d %5d", risk, disk)',
        "task%2Drunner%2Dwith%2Da%2Dlong%2Dname%2Dof%2Dits%2Down",
        "ｆｕｌｌｗｉｄｔｈ words, and a\u00adsoft hyphen",
        "x" + KEY.replace("-", "\u2011")[1:],
        "family: \U0001f468\u200d\U0001f469\u200d\U0001f467",
    ],
)
def test_what_is_written_so_and_is_no_key_stays(text: str) -> None:
    """Escapes and odd characters are no reason to take anything out."""
    assert REDACTOR.text(text) == text


def test_places_lead_back_to_the_text() -> None:
    """A span of the reading is the span of what reads so, with what is not seen after it."""
    text = "a\u200bb%2Dc&#45;\u00add\uff45"
    reading = revealed(text)
    assert reading is not None
    assert reading.text == "ab-c-de"
    assert [text[slice(*reading.origin((at, at + 1)))] for at in range(7)] == [
        "a\u200b",
        "b",
        "%2D",
        "c",
        "&#45;",
        "d",
        "\uff45",
    ]


# Base64 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lead", ["", "key ", "key: ", "x=", "OPENAI_API_KEY="])
@pytest.mark.parametrize(
    "key", [KEY, fake("sk-proj-", 40), fake("AIza", 35), fake("ghp_", 36), fake("AKIA", 16)]
)
def test_a_key_in_base64_within_a_text_goes(key: str, lead: str) -> None:
    """At each of the three places in a group of bytes; what stands before it may stay."""
    encoded = base64.b64encode(f"{lead}{key}\n".encode()).decode()
    redacted = REDACTOR.text(f"echo {encoded} | base64 -d")
    assert redacted.endswith(f"{MARK} | base64 -d")
    assert not any(
        encoded[at : at + 8] in redacted for at in range(max(0, len(encoded) - 32), len(encoded) - 8)
    )


def test_base64_on_several_lines_goes_to_its_end() -> None:
    """As `base64 .env` prints it."""
    lines = base64.encodebytes(f"A=1\nOPENAI_API_KEY={KEY}\n".encode()).decode()
    redacted = REDACTOR.text(lines + "and on")
    assert redacted.endswith(f"{MARK}\nand on")
    assert not any(lines[at : at + 8] in redacted for at in range(32, len(lines) - 10))


@pytest.mark.parametrize(
    "data", [b"nothing of note in here at all, only words", bytes(range(256)), b"risk-" * 20]
)
def test_base64_without_a_key_stays(data: bytes) -> None:
    """Also what has the letters of a prefix by chance."""
    text = f"data {base64.b64encode(data).decode()} end"
    assert REDACTOR.text(text) == text


def file_of(data: bytes, kind: str) -> JsonObject:
    """A file as Chat Completions has it."""
    return {"type": "file", "file": {"file_data": f"data:{kind};base64,{base64.b64encode(data).decode()}"}}


def test_text_that_is_called_octets_is_read() -> None:
    """A media type that says nothing hides nothing; real octets and real media keep every byte."""
    text = f"# settings\nOPENAI_API_KEY={KEY}\n".encode()
    assert REDACTOR.value(file_of(text, "application/octet-stream")) == file_of(
        text.replace(KEY.encode(), MARK.encode()), "application/octet-stream"
    )
    for data in (text + b"\0", b"\xff" + text):
        octets = file_of(data, "application/octet-stream")
        assert REDACTOR.value(octets) is octets
    picture = file_of(text, "image/png")
    assert REDACTOR.value(picture) is picture


def test_a_bare_file_of_text_is_read() -> None:
    """`file_data` without a media type."""
    data = base64.b64encode(b"x" * 300 + b" " + KEY.encode()).decode()
    redacted = REDACTOR.value({"file_data": data})
    assert redacted == {"file_data": base64.b64encode(b"x" * 300 + b" " + MARK.encode()).decode()}
