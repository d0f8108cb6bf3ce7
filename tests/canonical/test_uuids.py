"""UUIDs, beside whatever they stand; a longer number with a UUID in it is none (CASES 17)."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from canonical.scrubbing import scrubbed

U1 = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
AROUND = (
    "@",
    "file-@.txt",
    "@-suffix",
    "--@--",
    "@.jsonl",
    "/srv/@/x",
    "x%2F@%2Fy",
    "x%2f@",
    "a\\n@\\n",
    "在@中",
    "session_@_x",
    "id@",
    "{@}",
    '"id":"@"',
    "\x1b[1m@\x1b[0m",
    "a-@",
    "@-1",
    "pod/web-@",
    "#@",
)


@pytest.mark.parametrize("around", AROUND)
@given(uuid=st.uuids(), upper=st.booleans())
def test_a_uuid_is_found_beside_anything(around: str, uuid: UUID, *, upper: bool) -> None:
    """Names of files, escapes, letters of any alphabet, either case."""
    text = str(uuid).upper() if upper else str(uuid)
    assert scrubbed(around.replace("@", text), paths="off") == around.replace("@", "⟨uuid:1⟩")


@pytest.mark.parametrize(
    "text",
    [
        f"{U1}0",
        f"a{U1}",
        f"0{U1}",
        f"id1{U1}",
        f"{U1}f2",
        f"1234-{U1}",
        f"{U1}-4f89",
        f"{U1}-{U1}",
        U1[:-1],
        U1.replace("-", ""),
        U1.replace("-", "_"),
        U1.replace("e0", "g0"),
        "d670460b4b4aece5915caf5c68d12f560a9fe3e4",
        "0123456789abcdef0123456789abcdef",
    ],
)
def test_near_misses_stay(text: str) -> None:
    """A digit or group too many or too few, no dashes, shas and bare hex digits."""
    assert scrubbed(text) == text
    assert scrubbed(text, "tool_result") == text
