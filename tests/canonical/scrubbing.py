"""What scrubbing makes of one text, as the tests of its rules look at it."""

from __future__ import annotations

from rewind_proxy.canonical.model import MatchSettings
from rewind_proxy.canonical.paths.roots import discover, find_roots
from rewind_proxy.canonical.pointer import ROOT
from rewind_proxy.canonical.scrub import Numbering, Place, Scrubber


def scrubbed(text: str, place: Place = "user", member: str = "text", **settings: object) -> str:
    """The text with its placeholders, as the normalised fingerprint sees it."""
    match = MatchSettings.model_validate(settings)
    roots = find_roots([discover(text)], match.roots) if match.paths != "off" else ()
    return Numbering().render(Scrubber(match).leaf(text, member, place, roots), ROOT)
