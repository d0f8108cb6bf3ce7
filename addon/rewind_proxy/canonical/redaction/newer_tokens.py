"""Credentials of services that began to mark theirs lately, or that few use; as those in `tokens`.

What follows a short prefix must look random: capitals, small letters and digits, and its exact length.
"""

from __future__ import annotations

from rewind_proxy.canonical.redaction.rules import TokenRule, token_rule

_W = "[A-Za-z0-9]"
_B = "[A-Za-z0-9_-]"
_H = "[0-9a-f]"
_UUID = f"{_H}{{8}}-{_H}{{4}}-{_H}{{4}}-{_H}{{4}}-{_H}{{12}}"
_END = f"(?!{_B})"
_DIGIT = f"(?={_B}{{0,64}}?[0-9])"
_MIXED = f"{_DIGIT}(?=[a-z0-9_-]{{0,64}}[A-Z])(?=[A-Z0-9_-]{{0,64}}[a-z])"

NEWER_TOKEN_RULES: tuple[TokenRule, ...] = (
    token_rule(
        "RW126",
        "model-provider-key",
        ("pa-", f"{_MIXED}{_B}{{43}}{_END}"),  # Voyage
        ("llx-", f"{_W}{{40,}}"),  # LlamaIndex
        ("sk_", f"{_MIXED}{_W}{{43}}{_END}"),  # Novita
        ("sk_car_", f"{_W}{{20,}}"),  # Cartesia
        ("rpa_", f"{_DIGIT}[A-Z0-9]{{40,}}{_W}*"),  # RunPod
        ("ak- as-", f"{_MIXED}{_W}{{22}}{_END}"),  # Modal
        ("up_", f"{_MIXED}{_W}{{29}}{_END}"),  # Upstage
        ("flp_", f"{_W}{{40,}}"),  # Friendli
        ("esecret_", f"{_DIGIT}{_W}{{24,}}"),  # Anyscale
        ("m0-", f"{_MIXED}{_W}{{40}}{_END}"),  # Mem0
        ("sess-", f"{_MIXED}{_W}{{40}}{_END}"),  # OpenAI's console
    ),
    token_rule(
        "RW127",
        "model-gateway-key",
        ("sk-helicone- pk-helicone-", f"(?:eu-)?{_DIGIT}[a-z0-9]{{5,}}(?:-[a-z0-9]{{5,}}){{3}}"),
        ("dtn_", f"{_H}{{40,}}"),  # Daytona
        ("pylf_v1_", f"[a-z]{{2,8}}_{_W}{{40,}}"),  # Logfire
        ("unkey_", f"{_DIGIT}{_W}{{20,}}"),
        ("vtwn_", f"{_DIGIT}{_W}{{20,}}"),  # Val Town
        ("vercel_blob_rw_", f"{_DIGIT}{_B}{{30,}}"),
    ),
    token_rule(
        "RW246",
        "github-app-token",  # with a JSON Web Token in it
        ("ghs_ ghu_", rf"(?:[0-9]{{1,20}}_)?eyJ{_B}{{17,}}(?:\.{_B}+){{0,2}}"),
    ),
    token_rule(
        "RW247",
        "observability-key",
        ("hcaik_ hcbik_ hcxik_ hcxlk_ hcxmk_", f"{_DIGIT}[a-z0-9]{{56,}}"),  # Honeycomb
        ("xaat- xapt-", _UUID),  # Axiom
        ("waka_", _UUID),
        ("dg_", f"{_DIGIT}{_H}{{40}}{_END}"),  # Deepgram
    ),
    token_rule(
        "RW248",
        "platform-token",
        ("pat-na1- pat-na2- pat-eu1- pat-ap1-", _UUID),  # HubSpot
        ("dbtu_ dbtc_", f"{_DIGIT}{_B}{{36,}}"),
        ("shptka_ shpua_", f"{_H}{{32}}"),  # Shopify
        ("bkaj_ bkct_", f"{_DIGIT}{_W}{{30,}}"),  # Buildkite
        ("ddp_ ddo_ ddw_", f"{_DIGIT}{_W}{{36}}"),  # Deno
        ("st.", rf"{_UUID}\.{_H}{{32,}}\.{_H}{{32,}}"),  # Infisical
        ("sk.eyJ", rf"{_W}{{40,}}\.{_B}{{20,}}"),  # Mapbox
        ("access-sandbox- access-development- access-production-", _UUID),  # Plaid
        ("APA91b", f"{_B}{{100,}}"),  # Firebase
        ("oauth:", f"{_DIGIT}[a-z0-9]{{30}}{_END}"),  # Twitch
    ),
)
