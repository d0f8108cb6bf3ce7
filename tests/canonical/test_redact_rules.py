"""Each rule both ways: what it must take out, and what it must leave."""

from __future__ import annotations

import base64
import json

import pytest

from case_tables import fake, fake_hex
from rewind_proxy.canonical.redact import MARK, Redactor
from rewind_proxy.canonical.redaction.engine import BUILT_IN_RULES

REDACTOR = Redactor()
UUID = "0a1b2c3d-4e5f-4a6b-8c7d-0e1f2a3b4c5d"
# A line for each rule that goes by a prefix: the rule, and the credentials it is for.
TOKENS: list[tuple[str, list[str]]] = [
    ("RW101", [fake("sk-", 48), fake("sk-", 24), fake_hex("sk-", 32), fake("sk-None-", 40)]),
    ("RW101", [fake("sk-proj-", 40), fake("sk-svcacct-", 40), fake("sk-admin-", 40)]),
    ("RW101", ["sk-proj-" + "-".join(fake("", 20, str(i)) for i in range(3)) + "_" + fake("", 9)]),
    ("RW102", [fake("sk-ant-api03-", 93) + "AA", fake("sk-ant-admin01-", 93) + "AA"]),
    ("RW102", [fake("sk-ant-oat01-", 86) + "-AA", fake("sk-ant-ort01-", 86) + "_AA"]),
    ("RW103", [fake("AIza", 35), "AIza" + fake("", 17) + "-_" + fake("", 16), fake("AQ.Ab8RN6", 41)]),
    ("RW104", [fake("ya29.", 60), fake("ya29.a0-", 60), fake("GOCSPX-", 28), fake("1//0", 99)]),
    ("RW105", [fake("gsk_", 52)]),
    ("RW106", [fake("xai-", 80)]),
    ("RW107", [fake("pplx-", 48)]),
    ("RW108", [fake_hex("sk-or-v1-", 64)]),
    ("RW109", [fake("tgp_v1_", 43)]),
    ("RW110", [fake("fw_", 24)]),
    ("RW111", [fake("hf_", 34), fake("api_org_", 34), fake("hf_oauth_", 40)]),
    ("RW112", [fake("r8_", 37)]),
    ("RW113", [fake("csk-", 48)]),
    ("RW114", [fake("nvapi-", 64)]),
    ("RW115", ["sk-lf-0a1b2c3d-4e5f-4a6b-8c7d-0e1f2a3b4c5d"]),
    ("RW116", [fake_hex("lsv2_pt_", 32) + "_0a1b2c3d4e"]),
    ("RW117", [fake("pcsk_", 6) + fake("_", 60)]),
    ("RW118", [fake("tvly-", 32), fake("tvly-dev-", 32), fake("jina_", 60)]),
    ("RW118", [fake_hex("fc-", 32), fake("BSA", 28), fake_hex("ctx7sk-", 36)]),
    ("RW119", [fake_hex("e2b_", 40), fake("bb_live_", 27)]),
    ("RW120", [fake_hex("sk_", 48)]),
    ("RW121", [fake_hex("key_", 64)]),
    ("RW122", [fake("vck_", 56), fake("vcp_", 56)]),
    ("RW123", [fake_hex("tid=", 32) + ";exp=1700000000;sku=pro;chat=1;8kp=1:" + fake_hex("", 64)]),
    ("RW124", [fake("wandb_v1_", 80)]),
    ("RW125", [fake("bce-v3/ALTAK-", 21) + fake_hex("/", 40)]),
    ("RW106", [fake("xai-token-", 80)]),
    (
        "RW126",
        [
            fake("pa-", 43),
            fake("llx-", 48),
            fake("sk_", 43),
            fake("sk_car_", 22),
            fake("rpa_", 42).upper().replace("RPA", "rpa"),
        ],
    ),
    ("RW126", [fake("ak-", 22), fake("as-", 22), fake("up_", 29), fake("flp_", 44), fake("m0-", 40)]),
    ("RW126", [fake("esecret_", 40).lower(), fake("sess-", 40)]),
    (
        "RW127",
        ["sk-helicone-" + "-".join(fake("", 7, str(i)).lower() for i in range(4)), fake_hex("dtn_", 64)],
    ),
    (
        "RW127",
        [
            fake("pylf_v1_us_", 43),
            fake("unkey_", 22),
            fake("vtwn_", 30),
            fake("vercel_blob_rw_", 16) + fake("_", 30),
        ],
    ),
    (
        "RW246",
        [
            fake("ghs_1234567_eyJ", 40) + fake(".eyJ", 60) + fake(".", 86),
            fake("ghs_eyJ", 40) + fake(".eyJ", 60) + fake(".", 86),
        ],
    ),
    ("RW247", [fake("hcaik_", 58).lower(), f"xaat-{UUID}", f"waka_{UUID}", fake_hex("dg_", 40)]),
    ("RW248", [f"pat-na1-{UUID}", fake("dbtu_", 40), fake_hex("shptka_", 32), fake("bkct_", 40)]),
    (
        "RW248",
        [
            fake("ddp_", 36),
            fake_hex(f"st.{UUID}.", 32) + fake_hex(".", 32),
            fake("sk.eyJ", 80) + fake(".", 22),
        ],
    ),
    ("RW248", [f"access-production-{UUID}", fake("APA91b", 134), "oauth:" + fake("", 30).lower()]),
    ("RW201", [fake(f"gh{kind}_", 36) for kind in "pousr"]),
    ("RW201", [fake("github_pat_", 22) + "_" + fake("", 59)]),
    ("RW202", [fake("glpat-", 20), fake("glpat-", 27) + ".01." + fake("", 9), fake("gldt-", 20)]),
    ("RW202", [fake_hex("glptt-", 40), fake("glagent-", 50), fake("glimt-", 25)]),
    (
        "RW203",
        [fake("xoxb-", 40), fake("xoxp-1234567890-", 40), fake("xapp-1-A1-", 40), fake("xoxe.xoxp-1-", 60)],
    ),
    ("RW204", [fake("AKIA", 16), fake("ASIA", 16), fake("bedrock-api-key-", 60), fake("ABSK", 124) + "=="]),
    ("RW204", ["amzn.mws.0a1b2c3d-4e5f-4a6b-8c7d-0e1f2a3b4c5d", fake("da2-", 26).lower()]),
    ("RW205", [fake("npm_", 36)]),
    ("RW206", [fake("pypi-AgE", 100)]),
    ("RW207", [fake("sk_live_", 24), fake("rk_live_", 24), fake("sk_test_", 99), fake("whsec_", 32)]),
    ("RW208", [fake_hex("SK", 32)]),
    ("RW209", [fake("SG.", 22) + fake(".", 43)]),
    ("RW211", [fake_hex("dapi", 32), fake_hex("dapi", 32) + "-2"]),
    ("RW212", [fake_hex("dop_v1_", 64)]),
    ("RW213", [fake_hex("shpat_", 32), fake_hex("shpss_", 32)]),
    ("RW214", [fake("ntn_", 46), fake("secret_", 43)]),
    ("RW215", [fake("lin_api_", 40)]),
    ("RW216", [fake("sntrys_eyJ", 90), fake_hex("sntryu_", 64)]),
    ("RW217", ["AGE-SECRET-KEY-1" + fake("", 58).upper()]),
    ("RW218", [fake_hex("v1.0-", 24) + fake_hex("-", 146)]),
    ("RW219", [fake("hvs.", 90)]),
    ("RW220", [fake("glc_eyJ", 90), fake("glsa_", 32) + "_0a1b2c3d", fake("eyJrIjoi", 84)]),
    ("RW221", [fake("dckr_pat_", 27)]),
    ("RW222", [fake_hex("sbp_", 40), fake("sb_secret_", 31)]),
    ("RW223", [fake("ATATT3", 180) + "=" + fake("", 8), fake("ATBB", 32)]),
    ("RW224", [fake("figd_", 40)]),
    ("RW225", [fake_hex("PMAK-", 24) + fake_hex("-", 34)]),
    ("RW226", [fake("NRAK-", 27).upper(), fake("NRII-", 32)]),
    ("RW227", [fake_hex("pul-", 40)]),
    ("RW228", ["tskey-auth-" + fake("k", 11) + "CNTRL-" + fake("", 32)]),
    ("RW229", [fake_hex("rubygems_", 48)]),
    ("RW230", [fake("pscale_tkn_", 43)]),
    ("RW231", [fake("dp.pt.", 43)]),
    ("RW232", [fake("LTAI", 20)]),
    ("RW233", [fake("fm2_", 160), fake("fo1_", 43)]),
    ("RW234", [fake("AKCp", 69), fake("cmVmd", 59)]),
    ("RW235", [fake("ops_eyJ", 260)]),
    ("RW236", [fake("cio", 32)]),
    ("RW237", [fake("AKID", 32)]),
    ("RW238", [fake("EAAG", 180), fake("EAACEdEose0cBA", 120)]),
    ("RW239", [fake("sq0atp-", 22), fake("sq0csp-", 43), fake("EAAAl", 59)]),
    (
        "RW240",
        [fake("nfp_", 36), fake("rnd_", 28), fake("HRKU-AA", 58), fake("sha256~", 43), fake("npg_", 16)],
    ),
    ("RW241", [fake_hex("bkua_", 40), fake("CCIPAT_", 22) + fake_hex("_", 40), fake("API-", 26).upper()]),
    ("RW241", [fake_hex("sqp_", 40), fake_hex("sgp_0a1b2c3d4e5f6a7b_", 40), fake("oy2", 43).lower()]),
    ("RW242", [fake_hex("xkeysib-", 64) + fake("-", 16), fake("re_", 8) + fake("_", 24)]),
    (
        "RW243",
        [fake("CFPAT-", 43), fake("phx_", 43), fake("tfp_", 44) + "_" + fake("", 15), fake("sl.u.", 140)],
    ),
    ("RW244", [fake_hex("shippo_live_", 40), fake("EZAK", 54), fake_hex("FLWSECK-", 32) + "-X"]),
    (
        "RW245",
        [
            base64.b64encode(f"-----BEGIN {kind}PRIVATE KEY-----\n{fake('', 64)}\n".encode()).decode()
            for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "PGP ")
        ],
    ),
    ("RW301", [fake("eyJ", 33) + "." + fake("eyJ", 60) + "." + fake("", 43)]),
    ("RW301", [fake("eyJ", 33) + ".." + fake("", 16) + "." + fake("", 80) + "." + fake("", 22)]),
    ("RW301", [".".join([fake("eyJ", 33), fake("", 90), fake("", 16), fake("", 80), fake("", 22)])]),
    ("RW301", [fake("eyJ", 33) + "." + fake("eyJ", 60) + "."]),
    ("RW301", [fake("eyJ", 8000) + "." + fake("eyJ", 60) + "." + fake("", 43)]),
]
AROUND = [
    "{}",
    '"{}"',
    "'{}',",
    "={} ",
    "x={}&",
    "-{}",
    "_{}",
    "%20{}",
    "(see {})",
    "\\n{}\\n",
    "\x1b[32m{}\x1b[0m",
    "키{}",
]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("rule", "tokens"), TOKENS)
def test_a_token_goes_whole_wherever_it_can_start(rule: str, tokens: list[str], around: str) -> None:
    """A credential with a known prefix becomes the mark, by its own rule and with nothing of it left."""
    redactor = Redactor([name for name in BUILT_IN_RULES if name.startswith(rule)])
    for token in tokens:
        assert redactor.text(around.format(token)).rstrip(".") == around.format(MARK).rstrip("."), token


def test_every_prefix_rule_has_a_line_here() -> None:
    """No rule that goes by a prefix is without a test."""
    shown = {rule for rule, _ in TOKENS} | {"RW210"}
    assert {name[:5] for name in BUILT_IN_RULES if name < "RW302"} == shown


# A line for each rule that could take more than it should: texts that have its prefix and hold no credential.
NEAR_MISSES: dict[str, list[str]] = {
    "RW101": ["sk-proj-your-api-key-here", "sk-" + "x" * 48, "sk-proj-" + "X" * 40, "sk-..."],
    "RW102": ["sk-ant-api03-your-key-goes-here", "sk-ant-api03-" + "x" * 90, "sk-ant-…"],
    "RW103": ["AIza…", "AIzaSy" + "X" * 33, "AQ.Ab8", "FAQ.Ab8" + fake("", 30)],
    "RW104": ["ya29.", "http://x.test/a1//0" + fake("", 40), "1//0 is a division"],
    "RW111": ["hf_oauth_expiration_minutes: 480", "hf_oauth_client_secret_of_the_space_app"],
    "RW118": ["fc-cache-of-the-font-directories-here", "fc-" + fake("", 40), "BSA" + "A" * 28],
    "RW122": ["vcp_port", "vck_" + "x" * 24],
    "RW123": ["/x?tid=" + fake_hex("", 32) + "&a=b", "tid=12345;exp=1"],
    "RW125": ["bce-v3/ALTAK-short"],
    "RW126": [
        "as-" + "a" * 22,
        "pa-" + "the-path-to-the-file-that-holds-the-answers1",
        "sk_" + "a1" * 20,
        "up_" + "A" * 29,
    ],
    "RW127": [
        "sk-helicone-your-api-key-goes-here1",
        "unkey_" + "x" * 22,
        "vercel_blob_rw_token_of_the_store_you_made",
    ],
    "RW247": [f"id-{UUID}", "dg_" + "a" * 40, "hcaik_"],
    "RW248": ["pat-na1-your-token", "oauth:" + "a" * 30, "dbtc_" + "x" * 40, "access-production-environment"],
    "RW201": ["ghp_" + "x" * 36, "ghp_...", "github_pat_" + "X" * 40],
    "RW202": ["glpat-" + "x" * 20, "glimt-…"],
    "RW204": ["AKIATOOSHORT", "da2-abcdefghijklmnopqrstuvwxyz", "ABSKLOOKSLIKEAWORD"],
    "RW207": ["sk_live_" + "x" * 24, "pk_live_" + fake("", 24), "whsec_..."],
    "RW209": ["SG.yourkey", "SG.a.b"],
    "RW214": ["secret_" + "a_" * 22, "ntn_your_token"],
    "RW219": ["hvs.example", "chvs." + fake("", 24)],
    "RW232": ["LTAIR"],
    "RW237": ["AKID" + fake("", 20), "AKID" + "A" * 32],
    "RW238": ["EAA" + "G" * 60, "EAAS and EAA-Wallet"],
    "RW239": ["sq0idp-" + fake("", 22)],
    "RW240": ["nfp_total", "sha256:" + fake_hex("", 64), "npg_" + "a" * 20],
    "RW241": ["API-DOCUMENTATIONOFTHEPROJECT1", "ico-arrow", "oy2" + "a" * 43, "sgp_local"],
    "RW242": ["re_compiled_" + "a" * 20, "re_" + "a" * 8 + "_pattern"],
    "RW243": ["phc_" + fake("", 43), "sl.po", "p8e-" + "a" * 32],
    "RW245": [base64.b64encode(b"-----BEGIN CERTIFICATE-----\n" + b"MIID" * 16).decode()],
    "RW301": ["eyJhbGciOi…...", "eyJ" + fake("", 40), "eyJ" + fake("", 20) + ".test"],
}


@pytest.mark.parametrize(("rule", "texts"), NEAR_MISSES.items(), ids=NEAR_MISSES)
def test_what_only_has_the_prefix_of_a_token_stays(rule: str, texts: list[str]) -> None:
    """Placeholders, public keys, identifiers and words with a known prefix are left by its rule."""
    redactor = Redactor([name for name in BUILT_IN_RULES if name.startswith(rule)])
    for text in texts:
        assert redactor.text(f"use {text} here") == f"use {text} here"


def test_a_telegram_token_goes_and_the_bot_stays() -> None:
    """The secret half of a bot token is known by the number before it."""
    text = "https://api.telegram.org/bot123456789:{}/getMe"
    assert REDACTOR.text(text.format(fake("AA", 33))) == text.format(MARK)


def test_two_tokens_on_one_line_both_go() -> None:
    """Neither the first nor the last credential of a text hides the other."""
    first, last = fake("sk-proj-", 40), fake("hf_", 34)
    assert REDACTOR.text(f"{first} {last}") == f"{MARK} {MARK}"
    assert REDACTOR.text(f"{first},{last}") == f"{MARK},{MARK}"


KEY = fake("", 30)
HEX = fake_hex("", 32)
PASSWORD = "hunter2" + "-x9"
BASIC = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
# A line for each case: the text with a place for what must go, and what that is.
CONTEXTS = {
    "bearer": ("curl -H 'Authorization: Bearer {}' https://x.test", "tok.en-with_chars+" + KEY + "=="),
    "bearer in lower case": ("authorization: bearer {}", fake("", 24)),
    "bearer and a colon": ("Authorization:Bearer:{}", fake("", 24)),
    "basic": ("Authorization: Basic {}", BASIC),
    "token": ("Authorization: token {}", fake("", 40)),
    "bare authorization": ("authorization: {}", fake("", 40)),
    "header in code": ('headers = {{"Authorization": "Bearer {}"}}', KEY),
    "header in escaped JSON": ('{{\\"Authorization\\": \\"Bearer {}\\"}}', KEY),
    "proxy authorization": ("Proxy-Authorization: Basic {}", BASIC),
    "bearer alone": ("x-auth: Bearer {}", KEY),
    "api key header": ("-H 'x-api-key: {}'", KEY),
    "google header": ("x-goog-api-key: {}", fake("", 39)),
    "private token": ("PRIVATE-TOKEN: {}", fake("", 20)),
    "cookie": ("cookie: {}", f"sid={KEY}; theme=dark"),
    "cookie in curl": ("curl -H 'Cookie: {}' https://x.test", f"a=1; session={KEY}"),
    "set-cookie": ("Set-Cookie: {}", f"SID={KEY}"),
    "shell": ('export AWS_SECRET_ACCESS_KEY={}"', "FAKE" + KEY),
    "shell, quoted": ("MISTRAL_API_KEY='{}'", fake("", 32)),
    "env file": ("COHERE_API_KEY={}\nNEXT=1", fake("", 40)),
    "numbered": ("API_KEY_2={}", KEY),
    "python": ('client = Client(api_key="{}")', KEY),
    "yaml": ("  apiKey: {}\n", KEY),
    "ruby": (":client_secret => '{}'", KEY),
    "go": ('secretKey := "{}"', KEY),
    "typed": ('api_key: str = "{}"', KEY),
    "subscript": ('os.environ["API_TOKEN"] = "{}"', KEY),
    "setter": ('setenv("API_TOKEN", "{}")', KEY),
    "option": ("deploy --api-key {} --force", KEY),
    "option with =": ("deploy --auth-token={} --force", KEY),
    "xml": ("<apiKey>{}</apiKey>", KEY),
    "json in text": ('got {{"apiKey":"{}","n":1}} back', "x" + KEY),
    "escape depth 1": ('{{\\"api_key\\": \\"{}\\"}}', HEX),
    "escape depth 2": ('{{\\\\\\"api_key\\\\\\": \\\\\\"{}\\\\\\"}}', HEX),
    "escape depth 3": ('{{\\\\\\\\\\\\\\"api_key\\\\\\\\\\\\\\": \\\\\\\\\\\\\\"{}\\\\\\\\\\\\\\"}}', HEX),
    "pairs before it": ('got {{ "service":"svc","operation":"X.y","auth_token":"{}" }}', fake("", 36)),
    "no pairs before it": ('got {{ "service":"svc","auth_token":"{}" }}', fake("", 36)),
    "windows path after it": ("API_KEY={} C:\\Users\\me", KEY),
    "windows path after it, joined": ("API_KEY={};C:\\Users\\me", KEY),
    "azure storage": ("AccountName=me;AccountKey={};EndpointSuffix=x", fake("", 86) + "=="),
    "npmrc": ("//npm.test/:_authToken={}", KEY),
    "docker": ('"auth": "{}"', base64.b64encode(f"me:{KEY}".encode()).decode()),
    "long value": ("API_KEY={} next", fake("", 3000)),
    "password": ('"password": "{}"', PASSWORD),
    "password in env": ("DB_PASSWORD={}", "hunter2"),
    "password in words": ('password = "{}"', "correcthorsebattery"),
    "password in odbc": ("Server=x;Uid=me;Pwd={};", PASSWORD),
    "database url": ("postgres://me:{}@db.test:5432/app", fake("", 12)),
    "password with @": ("amqp://me:{}@mq.test", "p@ss" + fake("", 6)),
    "curl user": ("curl -u me:{} https://x.test", PASSWORD),
    "curl user, quoted": ("curl --user 'me:{}' https://x.test", KEY),
    "curl user of one word": ("curl -u me:{} https://x.test", "pass"),
    "curl user among flags": ("curl -sSu me:{} https://x.test", "pass"),
    "curl proxy user": ("curl --proxy-user 'me:{}' https://x.test", PASSWORD),
    "sshpass": ("sshpass -p {} ssh me@x.test", PASSWORD),
    "sshpass, joined and quoted": ("sshpass -p'{}' ssh me@x.test", "a b".replace(" ", "_") + PASSWORD),
    "mysql": ("mysql -u root -p{} app", PASSWORD),
    "mysqldump": ("mysqldump --port 3306 -p'{}' app", PASSWORD),
    "redis": ("redis-cli -h x.test -a {} ping", PASSWORD),
    "docker login": ("docker login -u me -p {} registry.test", PASSWORD),
    "openssl": ("openssl rsa -in a.pem -passin pass:{} -out b.pem", PASSWORD),
    "netrc": ("machine x.test login me password {}\n", PASSWORD),
    "netrc on lines": ("machine x.test\n  login me\n  password {}\n", KEY),
    "digest": ('Authorization: Digest username="me", realm="x", uri="/", response="{}", nc=1', HEX),
    "user token in a URL": ("https://x.test/a?user_token={}&n=1", KEY),
    "secret key in a URL": ("https://x.test/a?secret_key={}&n=1", KEY),
    "jwt in a URL": ("https://x.test/a?jwt={}&n=1", KEY),
    "escaped =": ("x api_key\\u003d{}\\u0026n", KEY),
    "escaped &": ("GET https://x.test/a?b=1\\u0026sig={}\\u0026c=2", KEY),
    "encoded =": ("next=%2Fa%3Fapi_key%3D{} x", KEY),
    "otp": ("otpauth://totp/me@x.test?secret={}&issuer=x.test", "S3JDVB7Q" + "D2R7JPXX"),
    "git url": ("https://oauth2:{}@git.test/a.git", KEY),
    "token as user": ("https://{}@git.test/a.git", KEY),
    "url parameter": ("GET https://x.test/a?alt=sse&key={}&n=1", fake("", 39)),
    "first url parameter": ("https://x.test/a?access_token={}", KEY),
    "signed url": ("https://x.test/a?X-Amz-Signature={}&n=1", fake_hex("", 64)),
    "shared access signature": ("https://x.test/a?sv=1&sig={}&n=1", fake("", 43) + "%3D"),
    "slack webhook": ("https://hooks.slack.com/services/{}", fake("T", 8) + fake("/B", 8) + fake("/", 24)),
    "markdown, bold": ("**password**: {}", "hunter22" + "xyz"),
    "markdown, bold with the colon": ("**API key:** `{}`", KEY),
    "markdown, bold value": ("password: **{}**", PASSWORD),
    "markdown, list": ("- api key: `{}`\n- region: eu", KEY),
    "markdown, code": ("`DB_PASSWORD`: `{}`", PASSWORD),
    "markdown, row": ("| api_key | {} |\n| region | eu |", KEY),
    "markdown, row with code": ("| `password` | `{}` | the admin |", PASSWORD),
    "markup, cells": ("<tr><td>Password</td><td>{}</td></tr>", PASSWORD),
    "markup, strong": ("<p><strong>Password:</strong> {}</p>", PASSWORD),
    "markup, attribute": ('<db user="me" password="{}"/>', PASSWORD),
    "markup, pair": ('<add key="ApiKey" value="{}" />', KEY),
    "markup, form": ('<input type="hidden" name="csrf_token" value="{}">', KEY),
    "android": ('<string name="api_key">{}</string>', KEY),
    "property list": ("<key>apiKey</key>\n\t<string>{}</string>", KEY),
    "yaml, pair": ("  - name: DB_PASSWORD\n    value: {}\n", PASSWORD),
    "yaml, quoted pair": ('- name: API_KEY\n  value: "{}"\n', KEY),
    "yaml, block": ("api_key: |\n  {}\nnext: 1", KEY),
    "json pair in text": ('env: [{{"name": "API_KEY", "value": "{}"}}, 1]', KEY),
    "json pair, escaped": ('{{\\"key\\":\\"API_KEY\\",\\"value\\":\\"{}\\"}}', KEY),
    "fish": ("set -gx OPENAI_API_KEY {}", KEY),
    "setx": ("setx OPENAI_API_KEY {} /M", KEY),
    "csh": ("setenv API_TOKEN {}", KEY),
    "powershell": ('$env:API_KEY = "{}"', KEY),
    "set by a command": ("aws configure set aws_secret_access_key {}", "wJalr/" + KEY),
    "docker run": ("docker run -e POSTGRES_PASSWORD={} postgres", PASSWORD),
    "from a literal": ("kubectl create secret generic a --from-literal=password={}", PASSWORD),
    "pgpassword": ("PGPASSWORD={} psql -h x.test", PASSWORD),
    "pass": ("user: me\npass: {}", "hunter2" + "xyz"),
    "pw": ("pw: {}", "hunter2" + "xyz"),
    "pwd": ("login me, pwd: {}", "hunter2" + "xyz"),
    "pass in env": ("PASS={}", "hunter2" + "xyz"),
    "smtp pass": ("SMTP_PASS={}", PASSWORD),
    "a sentence": ("the api key is {}", KEY),
    "a sentence with quotes": ("my password is `{}`", PASSWORD),
    "fullwidth colon": ("api_key：{}", KEY),
    "chinese": ("密码：{}", PASSWORD),
    "german": ("Passwort: {}", PASSWORD),
    "spanish": ("contraseña: {}", PASSWORD),
    "bearer member": ('"bearer": "{}"', KEY),
    "ssws": ("Authorization: SSWS {}", KEY),
    "kube config": ("    client-key-data: {}", fake("LS0t", 200)),
    "kube token": ("    token: {}", KEY),
    "service bus": ("Endpoint=sb://x.test/;SharedAccessKeyName=a;SharedAccessKey={}", fake("", 43) + "="),
    "sql server": ("Server=x;User Id=me;Password={};Encrypt=true", PASSWORD),
    "mongodb": ("mongodb+srv://me:{}@x.test/a", PASSWORD),
    "redis url": ("redis://:{}@x.test:6379/0", PASSWORD),
    "sql": ("CREATE USER 'a'@'h' IDENTIFIED BY '{}';", PASSWORD),
    "sql, plugin": ("ALTER USER a IDENTIFIED WITH caching_sha2_password BY '{}'", PASSWORD),
    "sql, role": ("CREATE ROLE app WITH LOGIN PASSWORD '{}' VALID UNTIL 'x'", PASSWORD),
    "coloured": ("\x1b[32mDB_PASSWORD\x1b[0m=\x1b[33m{}\x1b[0m", PASSWORD),
    "coloured by grep": ("API_\x1b[01;31m\x1b[KSECRET\x1b[m\x1b[K={}\n", KEY),
    "coloured json": ('\x1b[34;1m"password"\x1b[0m\x1b[1;39m:\x1b[0m \x1b[0;32m"{}"\x1b[0m', PASSWORD),
    "curl cookies": ("curl -b '{}' https://x.test", f"session={KEY}"),
    "curl cookies, long": ("curl --cookie {} https://x.test", f"session={KEY}"),
    "google signature": ("https://x.test/a?X-Goog-Signature={}", fake_hex("", 128)),
    "teams webhook": (
        "https://x.webhook.office.com/webhookb2/{}",
        "0a1b2c3d-4e5f-4a6b-8c7d-0e1f2a3b4c5d@0a1b2c3d-4e5f-4a6b-8c7d-0e1f2a3b4c5e/IncomingWebhook/"
        + fake_hex("", 32)
        + "/0a1b2c3d-4e5f-4a6b-8c7d-0e1f2a3b4c5f",
    ),
    "zapier webhook": ("https://hooks.zapier.com/hooks/catch/{}", "1234567/" + fake("", 7)),
    "ifttt webhook": ("https://maker.ifttt.com/trigger/a/with/key/{}", fake("", 43)),
    "discord webhook": ("https://discord.com/api/webhooks/123456789012345678/{}", fake("", 68)),
}

# And for those that are known whole, by their own shape as well as by what stands around them.
SHAPED = {
    "password of an app": ("GMAIL_APP_PASSWORD={}", "abcd efgh ijkl mnop"),
    "password of an app, quoted": ('password: "{}"', "abcd efgh ijkl mnop"),
    "discord bot": ('discord client.login("{}")', fake("MT", 24) + "." + fake("", 6) + "." + fake("", 38)),
    "mailgun": ("mailgun sends with {}", fake_hex("key-", 32)),
    "mailchimp": ("use {} there", fake_hex("", 32) + "-us14"),
    "entra": ("use {} there", "aB3" + "8Q~" + fake("", 34)),
    "1password": ("A3 is {}.", "A3-" + "ASWWYB-798JRY" + "-LJVD4-23DC2-86TVM-9AB3C"),
    "airtable": ("use {} there", fake("pat", 14) + "." + fake_hex("", 64)),
    "terraform": ('credentials "x.test" {{ {} }}', fake("", 14) + ".atlasv1." + fake("", 67)),
    "asana": ("asana: 1/1201234567890123:{}", fake_hex("", 32)),
    "azure": ("use {} there", fake("", 52) + "JQQJ9" + "9BACAC" + fake("", 21)),
    "azure storage": ("use {} there", fake("", 76) + "+ASt" + fake("", 5) + "Q=="),
    "azure cosmos": ("use {} there", fake("", 76) + "ACDb" + fake("", 5) + "A=="),
    "azure functions": ("use {} there", fake("", 44) + "AzFu" + fake("", 5) + "w=="),
    "azure registry": ("use {} there", fake("", 42) + "+ACRA" + fake("", 5)),
    "azure bus": ("use {} there", fake("", 33) + "+ASbP" + fake("", 5) + "="),
    "jetbrains": ("use {} there", "perm:YWRtaW4=.VG9rZW4=." + fake("", 30)),
    "snyk": ("use {} there", fake_hex("snyk_uat.", 8) + fake(".", 90)),
    "launchdarkly": ("launchdarkly: {}", f"sdk-{UUID}"),
    "jwk": ('a key: {{"kty":"EC","crv":"P-256","d":"{}"}} it is', fake("", 43)),
    "putty": ("Private-Lines: 1\n{}\nPrivate-MAC: 00", fake("AAAA", 60)),
}


@pytest.mark.parametrize(
    ("text", "secret"), {**CONTEXTS, **SHAPED}.values(), ids={**CONTEXTS, **SHAPED}.keys()
)
def test_a_value_goes_and_what_names_it_stays(text: str, secret: str) -> None:
    """Just the value becomes the mark: name, scheme, quotes, backslashes and what follows stay."""
    assert REDACTOR.text(text.format(secret)) == text.format(MARK)


@pytest.mark.parametrize(("text", "secret"), CONTEXTS.values(), ids=CONTEXTS.keys())
def test_a_value_that_is_partly_redacted_goes_whole(text: str, secret: str) -> None:
    """What another rule left of a value goes with it."""
    half = secret[: len(secret) // 2] + MARK + secret[len(secret) // 2 :]
    redacted = REDACTOR.text(text.format(half))
    assert not any(secret[at : at + 8] in redacted for at in range(len(secret) - 7))


LINES = [fake("MIIEv", 59)] + [fake("", 64, str(number)) for number in range(4)] + [fake("", 22) + "=="]
NAMES = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "OPENSSH PRIVATE KEY"]
FRAMES = {
    "lines": "{}\n",
    "crlf": "{}\r\n",
    "escaped": "{}\\n",
    "numbered": "    12→{}\n",
    "diff": "+{}\n",
    "quoted": '"{}" +\n',
}


@pytest.mark.parametrize("name", [*NAMES, "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_a_private_key_goes_whole_or_cut(name: str, frame: str) -> None:
    """A key block goes with its frame; of one that is cut off, all the lines that are there."""
    lines = [f"-----BEGIN {name}-----", *LINES, f"-----END {name}-----"]
    for end in (len(lines), 5):
        redacted = REDACTOR.text("".join(frame.format(line) for line in lines[:end]) + "the end")
        assert not any(line[at : at + 8] in redacted for line in LINES for at in range(0, len(line) - 7, 4))
        assert redacted.endswith("the end")


KEPT = [
    'a "kty" and its "k": "some-identifier-name-of-a-thing" beside it',
    "facebook 1234567890123456|the-quick-brown-fox-jumps-over",
    "zhipu model 0123456789abcdef0123456789abcdef.safetensorsbin01",
    "risk-adjusted-returns-2026 and <task-notification>",
    "/repo/disk-usage-report-2026.md, desk-review-checklist-final",
    "sk_hynix_chart_2026.png",
    "custom-skills-task-routing-map--sl-0001",
    "sk-learn-compatible-estimators-2026-final-version",
    "llama-3.3-70b-versatile gpt-4o-2024-08-06 claude-sonnet-5",
    "the bearer of bad news brings risk",
    "the token abcdefghijklmnopqrstuvwxyz was accepted",
    "bearer authentication is required for all of these endpoints",
    "Authorization: required for every endpoint",
    'headers={"Authorization": f"Bearer {token}"}',
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <your-token>",
    "token = os.environ['MY_TOKEN']",
    'api_key=os.getenv("OPENAI_API_KEY")',
    "api_key: ${{ secrets.OPENAI_API_KEY }}",
    "const token = await getAccessToken()",
    "apiKey: process.env.OPENAI_API_KEY,",
    "def f(token: CancellationTokenSourceFactory)",
    "token: vscode.CancellationToken",
    "API_KEY=your_api_key_here_1234",
    "the password prompt appeared twice",
    "authorization: headerMap.authorizationHeader, x: thisCreds.token_type",
    "_refresh token: https://x.test/rfc6749#section-6",
    "docker run -u 1000:1000 image; curl --upload-file a",
    "'CURLOPT_MAIL_RCPT', 'CURLOPT_PASSWORD', 'CURLOPT_READDATA'",
    "'PKPaymentToken', 'PKPaymentAuthorizationViewController'",
    "private_key: PKCS7PrivateKeyTypes,",
    "&lt;protocol&gt;://[&lt;user&gt;[:&lt;password&gt;]@]&lt;hostname&gt;",
    '"password": "Enter your password"',
    "password: string",
    "sshpass -p $SSH_PASSWORD ssh me@x.test",
    "sshpass -e ssh -p 2222 me@x.test",
    "mysql -u root -p app",
    "mkdir -p /srv/app/data && docker login registry.test",
    "curl -o out.txt http://x.test:8080/a -u 1000:1000",
    "machine learning, then login and password reset",
    "the default login for password resets",
    "digest of the response = the checksum",
    "https://x.test/a?page_token=CAUQAA8923hhsdjkfhKJH&keyword=abc123def456",
    "password: str | None = None",
    "cd $PWD && PWD=/home/me/app1 OLDPWD=/tmp/x1",
    "max_tokens: 100",
    '{"token":12345678,"n":1}',
    'nextPageToken: "CAUQAA8923hhsdjkfhKJH"',
    "primary_key=True, key=lambda pair: pair[0]",
    "cache_key = 'v2:a8f5f167f44f4964e6c998dee827110c'",
    'echo "=== deploy token ==="',
    "eyJhbGciOi…... and eyJhbGciOiJIUzI1NiJ9...",
    "options.exclude_editable settings.error_encoding_error_handler a.b.c",
    "git@github.com:user/repo.git http://localhost:8080/@scope/name ssh://git@host:22/x",
    "https://x.test/a?key=name&token=short&page=2",
    "the cookie: a small piece of data",
    "-----BEGIN CERTIFICATE-----\n" + "\n".join(LINES) + "\n-----END CERTIFICATE-----",
    'if line == "-----BEGIN PRIVATE KEY-----": raise ValueError(line)',
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "0a1b2c3d-4e5f-4a6b-8c7d-0e1f2a3b4c5d",
    "toolu_01A09q90qw90lq917835lq9 call_abc123abc123abc123abc123",
    "| name | type | description |\n| --- | --- | --- |\n| token | string | The token |",
    "| password | Administrator2 is the one to ask",
    "echo $TOKEN | base64",
    "type Token = AccessToken1Type | RefreshToken2Type",
    "auth: CredentialAuthRotate2Param | None",
    'auth = base64.b64encode("me".encode())',
    "private_key: ed25519.Ed25519PrivateKey, n: int",
    "the password is required1 for all",
    "the token is stored in AWS_SECRETS_MANAGER",
    "the api key is `OPENAI_API_KEY`",
    "--- PASS: TestLogin2 (0.01s)\nPASS: tests/login2.test.ts\nPASS: ubuntu-22.04",
    "pass: 12, fail: 3, first pass: 2026-11-30T09:00:00Z, pass: chromium120",
    "pwd: /home/me1/app, PWD=/home/me1/app, bypass: hunter2xyz1",
    "set -x PATH /usr/local/bin1 $PATH; set -euo pipefail",
    "git config user.token.name abcdefghijkl",
    "- name: PATH\n  value: /usr/local/bin1:/usr/bin\n- name: MODE\n  value: production1",
    '{"name": "API_KEY", "value": "$API_KEY"}, {"name": "TOKEN", "value": "${{ secrets.TOKEN }}"}',
    '<input type="password" name="password" value="">',
    "users are identified by 'email_1' and log in with a password 'of their own'",
    "CREATE USER a IDENTIFIED BY '$PASSWORD'; ALTER ROLE b PASSWORD NULL",
    "\x1b[32mpassword\x1b[0m: string",
    '<string name="password_hint">Choose your password</string>',
    '"password": "Passwort", "wrongPassword": "Wrong password, try again"',
    '{"type": "password", "title": "Password", "format": "password"}',
    "password=$PASSWORD api_key: ${API_KEY} token: <token> secret: your-secret-key-here1",
    "api_key: sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx token: ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "api_key = 'sk-...'; key = 'sk-ant-…'",
    "app password: must have more than eight letters",
    "curl -b cookies.txt -c cookies.txt https://x.test/a1?b=c",
    "client-certificate-data: " + base64.b64encode(b"-----BEGIN CERTIFICATE-----" * 3).decode(),
    "discord.gg/abcdefgh and MTIzNDU2Nzg5.short.mac",
    "sha256-" + base64.b64encode(bytes(range(32))).decode() + " integrity",
    "phc_" + fake("", 43) + " pk_live_" + fake("", 24),
    "https://x.webhook.office.com/about https://hooks.zapier.com/hooks",
    "![x](data:image/png;base64," + "iVBOR/AKIA" + "ABCDEFGHIJKLMNOP/" + "A" * 80 + ")",
]


@pytest.mark.parametrize("text", KEPT)
def test_prose_and_code_stay(text: str) -> None:
    """What only looks like a credential, or names one, is left as it is."""
    assert REDACTOR.text(text) == text
    document = json.dumps({"content": text, "n": [1]})
    assert REDACTOR.text(document) == document
