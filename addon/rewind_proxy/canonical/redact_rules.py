"""Credentials that show what they are by their own shape: providers, clouds, packages, services.

Each rule is a fixed prefix (its literal) and the shape of what follows, as public scanners such as gitleaks
know them; lengths are lower bounds, so that a longer key of the same make goes as a whole. A prefix counts
only where a token can start (`risk-adjusted-…` holds no `sk-` key), and that includes what an escape ends:
`%20sk-…`, `\\nsk-…`, `\\u003dsk-…`, a colour code.

A rule's id and version are stored with the recordings. To change a rule, add a version and keep the old one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

Span = tuple[int, int]

MARK = "[REDACTED]"
MARK_PATTERN = r"\[REDACTED\]"
QUOTE = r"""(?:\\{0,15}["'`])"""
"""A quote, as it stands in text or in up to four levels of escaped JSON."""

_WORD = "[A-Za-z0-9]"
_BASE64URL = "[A-Za-z0-9_-]"
_HEX = "[0-9a-fA-F]"

RUN_LENGTH = 20
RUN_CLASS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
RUN_LEAD = 10
"""Every match below has `RUN_LENGTH` characters of `RUN_CLASS` in a row, and its literal stands in that run
or among the `RUN_LEAD` characters before it: text without one need not be looked at."""


def starts(literal: str) -> str:
    """A pattern for `literal` where a token can start.

    The literal comes first and its surroundings are looked at afterwards: `re` then searches for the literal
    instead of trying every position.
    """
    before = (
        f"(?<!{_WORD}{literal})",
        f"(?<=%{_HEX}{_HEX}{literal})",
        rf"(?<=\\[abefnrtv0]{literal})",
        rf"(?<=\\x{_HEX}{_HEX}{literal})",
        rf"(?<=\\u{_HEX}{_HEX}{_HEX}{_HEX}{literal})",
        *(rf"(?<=\[{'[0-9;]' * width}m{literal})" for width in range(9)),
    )
    return f"{literal}(?:{'|'.join(before)})"


@dataclass(frozen=True, slots=True)
class TokenRule:
    """A credential known by its prefix. `literals`: one of them stands in every match."""

    id: str
    name: str
    literals: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    version: int = 1

    def spans(self, text: str, lowered: str) -> Iterator[Span]:  # noqa: ARG002  # one signature for all rules
        """Where `text` holds such credentials, in no order."""
        for pattern in self.patterns:
            for match in pattern.finditer(text):
                yield match.span()


def _rule(rule_id: str, name: str, *shapes: tuple[str, str], literals: tuple[str, ...] = ()) -> TokenRule:
    """A rule of (prefix, rest) pairs. `literals` are needed only where a prefix is itself a pattern."""
    found = literals or tuple(prefix.replace("\\", "") for prefix, _ in shapes)
    patterns = tuple(re.compile(starts(prefix) + rest) for prefix, rest in shapes)
    return TokenRule(rule_id, name, found, patterns)


_LONG = f"{_BASE64URL}{{16,}}"
# A bare `sk-` key is one long run, or a base64url run that mixes digits into letters as no file name does.
_SK = (
    f"(?!ant-|or-|lf-)(?:{_WORD}{{20,}}{_BASE64URL}*"
    "|(?=[a-z0-9_-]{0,64}[A-Z])(?=[A-Z0-9_-]{0,64}[a-z])"
    f"(?={_BASE64URL}{{0,64}}?[A-Za-z][0-9]{{1,8}}[A-Za-z]){_BASE64URL}{{20,}})"
)


@dataclass(frozen=True, slots=True)
class _TokenOfParts(TokenRule):
    """A JSON Web Token or an encrypted one: its header may be as long as a chain of certificates (`x5c`).

    Its parts are read one after another, each once, so that no header is too long to be read in linear time.
    """

    def spans(self, text: str, lowered: str) -> Iterator[Span]:  # noqa: ARG002  # one signature for all rules
        """Where `text` holds such credentials, in order."""
        position = 0
        while (found := _JWT_START.search(text, position)) is not None:
            header = _JWT_PART.match(text, found.end())
            position = header.end() if header else found.end()
            rest = (_JWT_REST if position - found.end() >= 17 else _JWT_BODY).match(text, position)
            if position - found.end() >= 8 and rest is not None:
                position = rest.end()
                yield found.start(), position


_JWT_START = re.compile(starts("eyJ"))
_JWT_PART = re.compile(f"{_BASE64URL}*+")
_JWT_BODY = re.compile(rf"\.eyJ{_BASE64URL}{{17,}}+(?:\.{_BASE64URL}*){{0,3}}")
_JWT_REST = re.compile(
    rf"\.{_BASE64URL}{{10,}}+\.{_BASE64URL}{{6,}}+(?:\.{_BASE64URL}+){{0,2}}"
    rf"|\.\.{_BASE64URL}{{8,}}+\.{_BASE64URL}{{8,}}+\.{_BASE64URL}{{6,}}+"
    rf"|{_JWT_BODY.pattern}"
)

TOKEN_RULES: tuple[TokenRule, ...] = (
    _rule("RW101", "openai-key", ("sk-", f"(?:proj|svcacct|admin|service|None)-{_LONG}"), ("sk-", _SK)),
    _rule("RW102", "anthropic-key", ("sk-ant-", f"{_WORD}{{2,12}}-{_LONG}"), ("sk-ant-", _LONG)),
    _rule("RW103", "google-key", ("AIza", f"{_BASE64URL}{{30,}}")),
    _rule("RW104", "google-oauth", ("ya29\\.", f"{_BASE64URL}{{20,}}"), ("GOCSPX-", f"{_BASE64URL}{{20,}}")),
    _rule("RW105", "groq-key", ("gsk_", f"{_WORD}{{20,}}")),
    _rule("RW106", "xai-key", ("xai-", f"{_WORD}{{20,}}{_BASE64URL}*")),
    _rule("RW107", "perplexity-key", ("pplx-", f"{_WORD}{{20,}}{_BASE64URL}*")),
    _rule("RW108", "openrouter-key", ("sk-or-", _LONG)),
    _rule("RW109", "together-key", ("tgp_v1_", _LONG)),
    _rule("RW110", "fireworks-key", ("fw_", f"{_WORD}{{20,}}"), ("fpk_", f"{_WORD}{{20,}}")),
    _rule("RW111", "hugging-face-token", ("hf_", f"{_WORD}{{20,}}"), ("api_org_", f"{_WORD}{{20,}}")),
    _rule("RW112", "replicate-token", ("r8_", f"{_WORD}{{20,}}")),
    _rule("RW113", "cerebras-key", ("csk-", f"{_WORD}{{20,}}")),
    _rule("RW114", "nvidia-key", ("nvapi-", f"{_BASE64URL}{{20,}}")),
    _rule("RW115", "langfuse-key", ("sk-lf-", _LONG), ("pk-lf-", _LONG)),
    _rule("RW116", "langsmith-key", ("lsv2_", f"(?:pt|sk)_{_WORD}{{20,}}{_BASE64URL}*")),
    _rule("RW117", "pinecone-key", ("pcsk_", f"{_WORD}{{2,12}}_{_WORD}{{20,}}")),
    _rule("RW118", "search-key", ("tvly-", f"{_BASE64URL}{{20,}}"), ("jina_", f"{_BASE64URL}{{20,}}")),
    _rule("RW119", "sandbox-key", ("e2b_", f"{_WORD}{{20,}}")),
    _rule("RW120", "eleven-labs-key", ("sk_", f"{_HEX}{{40,}}")),
    _rule("RW121", "cursor-key", ("key_", f"{_HEX}{{32,}}"), ("crsr_", f"{_HEX}{{32,}}")),
    _rule(
        "RW201",
        "github-token",
        ("gh[pousr]_", f"{_WORD}{{20,}}{_BASE64URL}*"),
        ("github_pat_", "[A-Za-z0-9_]{22,}"),
        literals=("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    _rule(
        "RW202",
        "gitlab-token",
        *((prefix, rf"{_LONG}(?:\.{_BASE64URL}+)*") for prefix in ("glpat-", "gldt-", "glrt-", "glcbt-")),
        *((prefix, rf"{_LONG}(?:\.{_BASE64URL}+)*") for prefix in ("glptt-", "glft-", "glsoat-", "gloas-")),
        ("GR1348941", _LONG),
    ),
    _rule(
        "RW203",
        "slack-token",
        ("xox[abeoprs]-", _LONG),
        ("xoxe\\.xox[bp]-", _LONG),
        ("xapp-", _LONG),
        ("xwfp-", _LONG),
        ("xoxd-", f"{_LONG}[A-Za-z0-9%_/+=-]*"),
        literals=(
            "xoxa-",
            "xoxb-",
            "xoxd-",
            "xoxe-",
            "xoxe.",
            "xoxo-",
            "xoxp-",
            "xoxr-",
            "xoxs-",
            "xapp-",
            "xwfp-",
        ),
    ),
    _rule(
        "RW204",
        "aws-access-key-id",
        *((prefix, f"[A-Z0-9]{{16}}(?!{_WORD})") for prefix in ("AKIA", "ASIA", "ABIA", "ACCA")),
        ("ABSK", "[A-Za-z0-9]{16}[A-Za-z0-9+/]{80,}={0,2}"),
        ("bedrock-api-key-", _LONG),
    ),
    _rule("RW205", "npm-token", ("npm_", f"{_WORD}{{30,}}")),
    _rule("RW206", "pypi-token", ("pypi-", f"AgE{_BASE64URL}{{40,}}"), ("pypi-", f"{_BASE64URL}{{80,}}")),
    _rule(
        "RW207",
        "stripe-key",
        *(
            (f"{kind}_{mode}_", f"{_WORD}{{16,}}")
            for kind in ("sk", "rk")
            for mode in ("live", "test", "prod")
        ),
        ("whsec_", f"{_WORD}{{20,}}"),
        literals=("k_live_", "k_test_", "k_prod_", "whsec_"),
    ),
    _rule("RW208", "twilio-key", ("SK", f"[0-9a-f]{{32}}(?!{_WORD})")),
    _rule("RW209", "sendgrid-key", ("SG\\.", rf"{_BASE64URL}{{20,}}\.{_LONG}")),
    TokenRule(
        "RW210",
        "telegram-bot-token",
        ("AA",),
        (re.compile(rf"AA(?<=[0-9]{{8}}:AA){_BASE64URL}{{32,}}"),),
    ),
    _rule("RW211", "databricks-token", ("dapi", f"{_HEX}{{32}}(?:-[0-9]+)?(?!{_WORD})")),
    _rule("RW212", "digitalocean-token", *((f"do{kind}_v1_", f"{_HEX}{{40,}}") for kind in "opr")),
    _rule(
        "RW213", "shopify-token", *((f"shp{kind}_", f"{_HEX}{{32,}}") for kind in ("at", "ca", "pa", "ss"))
    ),
    _rule("RW214", "notion-token", ("ntn_", f"{_WORD}{{40,}}"), ("secret_", f"{_WORD}{{43}}(?!{_WORD})")),
    _rule("RW215", "linear-key", ("lin_api_", f"{_WORD}{{20,}}"), ("lin_oauth_", f"{_WORD}{{20,}}")),
    _rule(
        "RW216",
        "sentry-token",
        ("sntrys_eyJ", f"{_WORD}{{16}}[A-Za-z0-9_+/=-]{{20,}}"),
        ("sntryu_", f"{_HEX}{{32,}}"),
    ),
    _rule("RW217", "age-secret-key", ("AGE-SECRET-KEY-1", "[0-9A-Z]{40,}")),
    _rule(
        "RW218",
        "cloudflare-key",
        ("v1\\.0-", f"{_HEX}{{24}}-{_HEX}{{60,}}"),
        ("cfut_", _LONG),
        ("cfat_", _LONG),
    ),
    _rule("RW219", "vault-token", *((rf"hv{kind}\.", f"{_BASE64URL}{{20,}}") for kind in "sbr")),
    _rule(
        "RW220",
        "grafana-token",
        ("glc_eyJ", f"{_WORD}{{16}}[A-Za-z0-9+/]{{10,}}={{0,2}}"),
        ("glsa_", f"{_WORD}{{30,}}_{_HEX}{{8}}"),
    ),
    _rule(
        "RW221", "docker-token", ("dckr_pat_", f"{_BASE64URL}{{20,}}"), ("dckr_oat_", f"{_BASE64URL}{{20,}}")
    ),
    _rule("RW222", "supabase-key", ("sbp_", f"{_HEX}{{40,}}"), ("sb_secret_", _LONG)),
    _rule(
        "RW223",
        "atlassian-token",
        ("ATATT3", f"{_LONG}[A-Za-z0-9_=-]*"),
        ("ATCTT3", f"{_LONG}[A-Za-z0-9_=-]*"),
    ),
    _rule("RW224", "figma-token", ("figd_", f"{_BASE64URL}{{30,}}"), ("figo_", f"{_BASE64URL}{{30,}}")),
    _rule("RW225", "postman-key", ("PMAK-", f"{_HEX}{{20,}}-{_HEX}{{30,}}")),
    _rule("RW226", "new-relic-key", ("NRAK-", f"{_WORD}{{24,}}")),
    _rule("RW227", "pulumi-token", ("pul-", f"{_HEX}{{40}}(?!{_WORD})")),
    _rule("RW228", "tailscale-key", ("tskey-", f"[a-z]{{2,12}}-{_LONG}")),
    _rule("RW229", "rubygems-key", ("rubygems_", f"{_HEX}{{40,}}")),
    _rule(
        "RW230",
        "planetscale-token",
        *((f"pscale_{k}_", f"{_LONG}[A-Za-z0-9_.=-]*") for k in ("tkn", "pw", "oauth")),
    ),
    _rule(
        "RW231",
        "doppler-token",
        ("dp\\.", f"(?:pt|st|ct|sa|scim|audit)\\.(?:{_BASE64URL}+\\.)?{_WORD}{{40,}}"),
    ),
    _rule("RW232", "alibaba-key-id", ("LTAI", f"{_WORD}{{16,26}}(?!{_WORD})")),
    _rule(
        "RW233",
        "fly-token",
        ("fm2_", f"{_WORD}{{12}}[A-Za-z0-9+/=_-]{{80,}}"),
        ("fo1_", f"{_BASE64URL}{{40,}}"),
    ),
    _rule("RW234", "artifactory-key", ("AKCp", f"{_WORD}{{60,}}")),
    _rule("RW235", "one-password-token", ("ops_eyJ", f"{_WORD}{{16}}[A-Za-z0-9+/_-]{{80,}}={{0,3}}")),
    _rule("RW236", "crates-io-token", ("cio", f"{_WORD}{{32}}(?!{_WORD})")),
    _TokenOfParts("RW301", "jwt", ("eyJ",), ()),
)


def holds_token(text: str) -> bool:
    """Whether any rule of the above has a match in `text`."""
    return any(
        any(literal in text for literal in rule.literals) and any(rule.spans(text, ""))
        for rule in TOKEN_RULES
    )
