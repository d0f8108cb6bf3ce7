"""Credentials that show what they are by their own shape: providers, clouds, packages, services.

Each rule is fixed prefixes and the shape of what follows, as public scanners (gitleaks, trufflehog,
detect-secrets) know them; lengths are lower bounds, so that a longer key of the same make goes as a whole.
Keys that are meant to be public stay: `pk_live_…`, `phc_…`, `sb_publishable_…`.

A rule's id and version are stored with the recordings. To change a rule, add a version and keep the old one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rewind_proxy.canonical.redaction.newer_tokens import NEWER_TOKEN_RULES
from rewind_proxy.canonical.redaction.rules import TOKEN_START, Span, TokenRule, token_rule

_W = "[A-Za-z0-9]"
_B = "[A-Za-z0-9_-]"
_H = "[0-9a-fA-F]"
_LONG = f"{_B}{{16,}}"
_END = f"(?!{_B})"
_DIGIT = f"(?={_B}{{0,64}}?[0-9])"
"""A digit soon: what follows is no identifier or file name."""

# A bare `sk-` key is one long run, or a base64url run that mixes digits into letters as no file name does.
_SK = (
    f"(?!ant-|or-|lf-)(?:{_W}{{20,}}{_B}*"
    "|(?=[a-z0-9_-]{0,64}[A-Z])(?=[A-Z0-9_-]{0,64}[a-z])"
    f"(?={_B}{{0,64}}?[A-Za-z][0-9]{{1,8}}[A-Za-z]){_B}{{20,}})"
)


@dataclass(frozen=True, slots=True)
class _TokenOfParts(TokenRule):
    """A JSON Web Token or an encrypted one: its header may be as long as a chain of certificates (`x5c`).

    Its parts are read one after another, each once, so that no header is too long to be read in linear time.
    """

    def spans(self, text: str, lowered: str) -> Iterator[Span]:  # noqa: ARG002  # one signature for all rules
        """Where `text` holds such credentials, in order."""
        for prefix, part in self.shapes:
            start = text.find(prefix)
            while start >= 0:
                position = start + len(prefix)
                if TOKEN_START.match(text, start):
                    header = part.match(text, position)
                    end = header.end() if header else position
                    rest = (_JWT_REST if end - position >= 17 else _JWT_BODY).match(text, end)
                    enough = end - position >= 8 and rest is not None
                    position = rest.end() if rest is not None and enough else end
                    if enough:
                        yield start, position
                start = text.find(prefix, position)


_JWT_BODY = re.compile(rf"\.eyJ{_B}{{17,}}+(?:\.{_B}*){{0,3}}")
_JWT_REST = re.compile(
    rf"\.{_B}{{10,}}+\.{_B}{{6,}}+(?:\.{_B}+){{0,2}}"
    rf"|\.\.{_B}{{8,}}+\.{_B}{{8,}}+\.{_B}{{6,}}+"
    rf"|{_JWT_BODY.pattern}"
)

_PEM = "LS0tLS1CRUdJTi"
"""`-----BEGIN ` in base64, as far as the next letter does not count."""


def _private_pem() -> str:
    """What follows `_PEM` where the block is a private key; its base64 may be on several lines."""
    kinds = ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP ")
    heads = (base64.b64encode(f"-----BEGIN {kind}PRIVATE KEY".encode()).decode() for kind in kinds)
    # The last group of four depends on what comes next.
    names = "|".join(head[len(_PEM) : len(head) - 4] for head in heads)
    line = "[A-Za-z0-9+/]++"
    return rf"(?:{names}){line}(?:(?<=[A-Za-z0-9+/]{{60}})(?:\r?\n[ \t]*|\\n){line})*+={{0,2}}"


TOKEN_RULES: tuple[TokenRule, ...] = (
    token_rule("RW101", "openai-key", ("sk-", f"(?:proj|svcacct|admin|service|None)-{_LONG}"), ("sk-", _SK)),
    token_rule("RW102", "anthropic-key", ("sk-ant-", f"{_W}{{2,12}}-{_LONG}"), ("sk-ant-", _LONG)),
    token_rule("RW103", "google-key", ("AIza", f"{_B}{{30,}}"), ("AQ.Ab8", f"{_B}{{30,}}")),
    token_rule("RW104", "google-oauth", ("ya29. GOCSPX-", f"{_B}{{20,}}"), ("1//0", f"{_B}{{30,}}")),
    token_rule("RW105", "groq-key", ("gsk_", f"{_W}{{20,}}")),
    token_rule("RW106", "xai-key", ("xai- xai-token-", f"{_W}{{20,}}{_B}*")),
    token_rule("RW107", "perplexity-key", ("pplx-", f"{_W}{{20,}}{_B}*")),
    token_rule("RW108", "openrouter-key", ("sk-or-", _LONG)),
    token_rule("RW109", "together-key", ("tgp_v1_", _LONG)),
    token_rule("RW110", "fireworks-key", ("fw_ fpk_", f"{_W}{{20,}}")),
    token_rule(
        "RW111",
        "hugging-face-token",
        ("hf_ api_org_", f"{_W}{{20,}}"),
        ("hf_oauth_", rf"{_DIGIT}{_B}{{20,}}(?:\.{_B}+){{0,2}}"),
    ),
    token_rule("RW112", "replicate-token", ("r8_", f"{_W}{{20,}}")),
    token_rule("RW113", "cerebras-key", ("csk-", f"{_W}{{20,}}")),
    token_rule("RW114", "nvidia-key", ("nvapi-", f"{_B}{{20,}}")),
    token_rule("RW115", "langfuse-key", ("sk-lf- pk-lf-", _LONG)),
    token_rule("RW116", "langsmith-key", ("lsv2_", f"(?:pt|sk)_{_W}{{20,}}{_B}*")),
    token_rule("RW117", "pinecone-key", ("pcsk_", f"{_W}{{2,12}}_{_W}{{20,}}")),
    token_rule(
        "RW118",
        "search-key",
        ("tvly- jina_", f"{_B}{{20,}}"),
        ("fc-", f"{_DIGIT}{_W}{{32}}{_END}"),
        ("BSA", f"(?=[A-Z0-9_-]*[a-z]){_DIGIT}{_B}{{27,28}}{_END}"),
        ("ctx7sk-", _LONG),
    ),
    token_rule("RW119", "sandbox-key", ("e2b_", f"{_W}{{20,}}"), ("bb_live_ bb_test_", f"{_W}{{20,}}")),
    token_rule("RW120", "eleven-labs-key", ("sk_", f"{_H}{{40,}}")),
    token_rule("RW121", "cursor-key", ("key_ crsr_", f"{_H}{{32,}}")),
    token_rule("RW122", "vercel-key", ("vck_ vcp_ vci_ vca_ vcr_", f"{_W}{{24,}}")),
    token_rule(
        "RW123",
        "copilot-token",
        ("tid=", rf"{_H}{{20,64}}(?:;[A-Za-z0-9_-]{{1,24}}=[A-Za-z0-9_.:/,-]{{0,256}})+"),
    ),
    token_rule("RW124", "wandb-key", ("wandb_v1_", _LONG)),
    token_rule("RW125", "baidu-key", ("bce-v3/", f"ALTAK-{_W}{{20,}}(?:/{_H}{{20,}})?")),
    token_rule(
        "RW201",
        "github-token",
        ("ghp_ gho_ ghu_ ghs_ ghr_", f"{_W}{{20,}}{_B}*"),
        ("github_pat_", "[A-Za-z0-9_]{22,}"),
    ),
    token_rule(
        "RW202",
        "gitlab-token",
        (
            "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glsoat- gloas- glagent- glffct- glimt-",
            rf"{_LONG}(?:\.{_B}+)*",
        ),
        ("GR1348941", _LONG),
    ),
    token_rule(
        "RW203",
        "slack-token",
        ("xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xoxb- xoxe.xoxp- xapp- xwfp-", _LONG),
        ("xoxd-", f"{_LONG}[A-Za-z0-9%_/+=-]*"),
    ),
    token_rule(
        "RW204",
        "aws-access-key-id",
        ("AKIA ASIA ABIA ACCA", f"[A-Z0-9]{{16}}(?!{_W})"),
        ("ABSK", "[A-Za-z0-9]{16}[A-Za-z0-9+/]{80,}={0,2}"),
        ("bedrock-api-key-", _LONG),
        ("amzn.mws.", f"{_H}{{8}}-{_H}{{4}}-{_H}{{4}}-{_H}{{4}}-{_H}{{12}}"),
        ("da2-", f"{_DIGIT}[a-z0-9]{{26}}{_END}"),
    ),
    token_rule("RW205", "npm-token", ("npm_", f"{_W}{{30,}}")),
    token_rule("RW206", "pypi-token", ("pypi-", f"AgE{_B}{{40,}}"), ("pypi-", f"{_B}{{80,}}")),
    token_rule(
        "RW207",
        "stripe-key",
        ("sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", f"{_W}{{16,}}"),
        ("whsec_", f"{_W}{{20,}}"),
    ),
    token_rule("RW208", "twilio-key", ("SK", f"[0-9a-f]{{32}}(?!{_W})")),
    token_rule("RW209", "sendgrid-key", ("SG.", rf"{_B}{{20,}}(?:\.{_LONG}|(?<={_B}{{60}}){_B}*)")),
    token_rule("RW210", "telegram-bot-token", ("AA", rf"(?<=[0-9]{{8}}:AA){_B}{{32,}}")),
    token_rule("RW211", "databricks-token", ("dapi", f"{_DIGIT}{_W}{{32}}(?:-[0-9]+)?(?!{_W})")),
    token_rule("RW212", "digitalocean-token", ("doo_v1_ dop_v1_ dor_v1_", f"{_W}{{40,}}")),
    token_rule("RW213", "shopify-token", ("shpat_ shpca_ shppa_ shpss_", f"{_W}{{32,}}")),
    token_rule("RW214", "notion-token", ("ntn_", f"{_W}{{40,}}"), ("secret_", f"{_W}{{43}}(?!{_W})")),
    token_rule("RW215", "linear-key", ("lin_api_ lin_oauth_", f"{_W}{{20,}}")),
    token_rule(
        "RW216",
        "sentry-token",
        ("sntrys_eyJ", f"{_W}{{16}}[A-Za-z0-9_+/=-]{{20,}}"),
        ("sntryu_ sntrys_", f"{_W}{{32,}}"),
    ),
    token_rule("RW217", "age-secret-key", ("AGE-SECRET-KEY-1", "[0-9A-Z]{40,}")),
    token_rule("RW218", "cloudflare-key", ("v1.0-", f"{_H}{{24}}-{_H}{{60,}}"), ("cfut_ cfat_ cfk_", _LONG)),
    token_rule("RW219", "vault-token", ("hvs. hvb. hvr.", f"{_B}{{20,}}")),
    token_rule(
        "RW220",
        "grafana-token",
        ("glc_eyJ", f"{_W}{{16}}[A-Za-z0-9+/]{{10,}}={{0,2}}"),
        ("glsa_", f"{_W}{{30,}}(?:_{_H}{{8}})?"),
        ("eyJrIjoi", f"{_W}{{60,}}={{0,3}}"),
    ),
    token_rule("RW221", "docker-token", ("dckr_pat_ dckr_oat_", f"{_B}{{20,}}")),
    token_rule("RW222", "supabase-key", ("sbp_", f"(?:oauth_)?{_W}{{40,}}"), ("sb_secret_", _LONG)),
    token_rule(
        "RW223", "atlassian-token", ("ATATT3 ATCTT3", f"{_LONG}[A-Za-z0-9_=-]*"), ("ATBB", f"{_W}{{28,}}")
    ),
    token_rule("RW224", "figma-token", ("figd_ figo_ figor_", f"{_B}{{30,}}")),
    token_rule("RW225", "postman-key", ("PMAK-", f"{_DIGIT}{_B}{{50,}}")),
    token_rule(
        "RW226",
        "new-relic-key",
        ("NRAK-", f"{_W}{{24,}}"),
        ("NRII-", f"{_B}{{32}}"),
        ("NRJS-", f"{_H}{{19}}"),
    ),
    token_rule("RW227", "pulumi-token", ("pul-", f"{_H}{{40}}(?!{_W})")),
    token_rule("RW228", "tailscale-key", ("tskey-", f"[a-z]{{2,12}}-{_LONG}")),
    token_rule("RW229", "rubygems-key", ("rubygems_", f"{_W}{{40,}}")),
    token_rule(
        "RW230", "planetscale-token", ("pscale_tkn_ pscale_pw_ pscale_oauth_", f"{_LONG}[A-Za-z0-9_.=-]*")
    ),
    token_rule("RW231", "doppler-token", ("dp.", rf"(?:pt|st|ct|sa|scim|audit)\.(?:{_B}+\.)?{_W}{{40,}}")),
    token_rule("RW232", "alibaba-key-id", ("LTAI", f"{_W}{{16,26}}(?!{_W})")),
    token_rule(
        "RW233",
        "fly-token",
        ("fm2_ fm1r_ fm1a_", f"{_W}{{12}}[A-Za-z0-9+/=_-]{{80,}}"),
        ("fo1_", f"{_B}{{40,}}"),
    ),
    token_rule("RW234", "artifactory-key", ("AKCp", f"{_W}{{60,}}"), ("cmVmd", f"{_W}{{59}}(?!{_W})")),
    token_rule("RW235", "one-password-token", ("ops_eyJ", f"{_W}{{16}}[A-Za-z0-9+/_-]{{80,}}={{0,3}}")),
    token_rule("RW236", "crates-io-token", ("cio", f"{_W}{{32}}(?!{_W})")),
    token_rule("RW237", "tencent-key-id", ("AKID", f"{_DIGIT}{_W}{{32}}(?!{_W})")),
    token_rule("RW238", "facebook-token", ("EAA", f"[A-Z]{_W}{{90,}}")),
    token_rule(
        "RW239", "square-token", ("sq0atp- sq0csp-", f"{_B}{{22,}}"), ("EAAA", f"{_B}{{56,64}}{_END}")
    ),
    token_rule(
        "RW240",
        "hosting-token",
        ("nfp_", f"{_W}{{36,}}"),
        ("rnd_", f"{_W}{{28,}}"),
        ("HRKU-AA", f"{_B}{{50,}}"),
        ("sha256~", f"{_B}{{43}}{_END}"),
        ("tk-us-", f"{_B}{{48}}"),
        ("xau_", f"{_W}{{30,}}"),
        ("napi_", f"{_W}{{60,}}"),
        ("npg_", f"{_DIGIT}{_W}{{16,}}"),
    ),
    token_rule(
        "RW241",
        "build-token",
        ("bkua_", f"{_H}{{40}}"),
        ("CCIPAT_", f"{_W}{{22}}_{_H}{{40}}"),
        ("API-", f"(?=(?:[A-Z]{{0,25}}[0-9]){{2}})[A-Z0-9]{{26}}{_END}"),
        ("squ_ sqp_ sqa_", f"{_H}{{40}}"),
        ("sgp_", f"(?:{_W}{{5,16}}_)?{_H}{{40}}"),
        ("pnu_", f"{_W}{{36}}"),
        ("oy2", f"{_DIGIT}[a-z0-9]{{43}}{_END}"),
        ("CLOJARS_", "[a-z0-9]{60}"),
        ("ico-", f"{_DIGIT}{_W}{{32}}{_END}"),
        ("dt0c01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ),
    token_rule(
        "RW242",
        "mail-key",
        ("xkeysib- xsmtpsib-", f"{_H}{{64}}-{_W}{{16}}"),
        ("re_", f"{_DIGIT}{_W}{{8}}_{_DIGIT}{_W}{{20,}}{_END}"),
    ),
    token_rule(
        "RW243",
        "service-token",
        ("CFPAT-", f"{_B}{{40,}}"),
        ("tfp_", f"{_B}{{20}}[A-Za-z0-9_.=-]{{30,}}"),
        ("rdme_", "[a-z0-9]{70}"),
        ("phx_ phs_", f"{_B}{{40,}}"),
        ("polar_oat_", f"{_W}{{30,}}"),
        ("p8e-", f"{_DIGIT}[a-z0-9]{{32}}{_END}"),
        ("dnkey-", f"{_B}{{26}}-{_B}{{52}}"),
        ("fio-u-", f"{_B}{{60,}}"),
        ("sl.", rf"(?:u\.)?{_B}{{100,}}"),
        ("AQVN", f"{_DIGIT}{_B}{{35,38}}{_END}"),
        ("y0_", f"{_DIGIT}{_B}{{50,}}"),
    ),
    token_rule(
        "RW244",
        "payment-key",
        ("shippo_live_ shippo_test_", f"{_H}{{40}}"),
        ("duffel_live_ duffel_test_", f"{_B}{{43}}"),
        ("EZAK EZTK", f"{_DIGIT}{_W}{{54}}(?!{_W})"),
        ("FLWSECK-", f"{_H}{{32}}-X"),
        ("FLWSECK_TEST-", f"{_H}{{12,}}(?:-X)?"),
    ),
    token_rule("RW245", "private-key-in-base64", (_PEM, _private_pem())),
    *NEWER_TOKEN_RULES,
    _TokenOfParts("RW301", "jwt", (("eyJ", re.compile(f"{_B}*+")),)),
)


def holds_token(text: str) -> bool:
    """Whether any rule of the above has a match in `text`."""
    return any(
        any(literal in text for literal in rule.literals) and any(rule.spans(text, ""))
        for rule in TOKEN_RULES
    )
