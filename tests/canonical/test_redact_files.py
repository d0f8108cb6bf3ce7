"""Credentials in the files, tables and commands that agents read aloud, and what only looks like one."""

from __future__ import annotations

import base64
import json

import pytest

from case_tables import fake, fake_hex
from rewind_proxy.canonical.model import JsonValue
from rewind_proxy.canonical.redact import MARK, Redactor

REDACTOR = Redactor()
KEY = fake("", 32)
PROVIDERS = fake("sk-proj-", 40)
WORD, PASSWORD = "hunter", "hunter2x"


def encoded(text: str) -> str:
    """Base64 of a text."""
    return base64.b64encode(text.encode()).decode()


def pem(between: str, *, end: str = "") -> str:
    """A private key whose lines have something between them."""
    lines = ["-----BEGIN PRIVATE KEY-----", fake("MIIE", 60), KEY * 2, "-----END PRIVATE KEY-----"]
    return between.join(lines) + end


# A text with `@` for the credential, and the credential.
GONE = [
    # options: a word of letters is enough
    ("mytool --token @", "abcdef"),
    ("mytool --api-key @ run", "abcdefgh"),
    ("mytool --password @", WORD),
    ("mytool --password=@", WORD),
    ("gh auth --token=@ && x", "abcdefgh"),
    ("x --auth-token @ --verbose", "abcdefghijkl"),
    ("x --client-secret @ | y", "abcdefgh"),
    ('x --password "@"', "correct horse battery"),
    ('args: "--token", "@", "-v"', "abcdefgh"),
    ("wget --user=ann --password=@ http://x", WORD),
    ("wget --http-password=@ http://x", WORD),
    ("helm upgrade x --set db.password=@,foo=bar", WORD),
    ("java -Ddb.password=@ -jar x", WORD),
    # variables
    ("PGPASSWORD=@ psql -h x", WORD),
    ("docker run -e POSTGRES_PASSWORD=@ postgres", WORD),
    ('export DB_PASSWORD="@"', "correct horse battery"),
    ("AWS Secret Access Key [None]: @", fake("", 40)),
    ("secret_key_base: @", fake_hex("", 128)),
    ("//registry.x/:_password=@", encoded("Hunter!")),
    # connection strings and URLs
    ("jdbc:postgresql://h/db?user=ann&password=@", WORD),
    ("jdbc:sqlserver://h:1433;databaseName=x;user=ann;password=@;", WORD),
    ("jdbc:oracle:thin:ann/@@//h:1521/x", WORD),
    ("Server=h;Database=x;User Id=ann;Password=@;", WORD),
    ("Server=h;Uid=ann;Pwd=@;", "hunterx"),
    ("host=h user=ann password=@ dbname=x", WORD),
    ("u=postgres%3A%2F%2Fann%3A@%40db%2Fx", PASSWORD),
    ('"postgres:\\/\\/ann:@@db\\/x', PASSWORD),
    # commands
    ("sqlplus -S ann/@@db", PASSWORD),
    ("http -a ann:@ https://x", PASSWORD),
    ("ldapsearch -x -D cn=admin -w @ -b dc=x", PASSWORD),
    ("smbclient //h/s -U ann%@", PASSWORD),
    ("az login --service-principal -u x -p @ --tenant y", PASSWORD),
    ("openssl enc -k @ -in x", PASSWORD),
    ("kubectl create secret generic x --from-literal=db=@", PASSWORD),
    # files of logins
    ("machine x.test login ann password @", PASSWORD),
    ("machine x.test\n  login ann\n  password @\n", WORD),
    ("machine x.test password @ login ann", PASSWORD),
    ("machine x.test login ann account z password @", PASSWORD),
    ("machine git\nlogin ann\npassword @", PASSWORD),
    ("localhost:5432:mydb:ann:@", PASSWORD),
    ("# pgpass\n*:*:*:ann:@\n", "hunterx"),
    ('{"auths":{"https://index.docker.io/v1/":{"auth":"@"}}}', encoded("ann:hunter2x")),
    ('$ cat config.json\n{"auths": {"ghcr.io": {"auth": "@"}}}', encoded("ann:hunter")),
    ("====== Data ======\nKey         Value\n---         -----\npassword    @\n", "hunter2"),
    # markup
    ('<input type="password" name="p" value="@">', WORD),
    ('<input value="@" type="password">', WORD),
    ("<input type='password' id=x value='@'/>", WORD),
    ('<input type=\\"password\\" value=\\"@\\">', WORD),
    ("<password>@</password>", WORD),
    ("<server><username>a</username><password>@</password></server>", WORD),
    # cookies
    ('set-cookie: sid="@"; Path=/', "0a1b2c3d4e5f"),
    ("Set-Cookie: session=@; Path=/; HttpOnly", "abcdefgh"),
    # tables
    ("user,password,role\nann,@,admin\n", PASSWORD),
    ("user,password,role\nbob,x1y2z3w4,user\nann,@,admin\n", PASSWORD),
    ("user,password\r\nann,@\r\n", WORD),
    ('"user","password"\n"ann","@"\n', "hunter, 2x"),
    ("user\tapi_key\nann\t@\n", KEY),
    ("user;passwort\nann;@\n", PASSWORD),
    ("| user | password |\n|---|---|\n| ann | @ |", PASSWORD),
    ("| name | api_key | url |\n|---|:---|---|\n| a | @ | http://x |", KEY),
    (" user | password  \n------+-----------\n ann  | @\n(1 row)", PASSWORD),
    ("+------+----------+\n| user | password |\n+------+----------+\n| ann  | @ |\n", PASSWORD),
    ("│ user │ token │\n├──────┼───────┤\n│ ann │ @ │", KEY),
    # Kubernetes
    (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  user: YQ==\n  db: @\n",
        encoded("hunter2"),
    ),
    (
        "apiVersion: v1\ndata:\n  other: YQ==\n  db: @\nkind: Secret\nmetadata:\n  name: x\n",
        encoded("secrets!"),
    ),
    ("kind: Secret\nstringData:\n  conf: |\n    a: 1\n    @\ntype: Opaque\n", "some line"),
    ("kind: List\nitems:\n- apiVersion: v1\n  data:\n    db: @\n  kind: Secret\n", encoded("hunter2")),
    (
        '$ kubectl get secret -o json\n{\n "data": {\n  "db": "@"\n },\n "kind": "Secret"\n}\n',
        encoded("hunter2"),
    ),
    # keys
    (pem("\n    "), KEY),
    (pem("\\n"), KEY),
    (pem("\\\\n"), KEY),
    (pem("\n> "), KEY),
    (pem("\\n' +\n'"), KEY),
    (
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n@\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
        fake("P2/", 60),
    ),
    # base64 of base64
    ("x: @", encoded(encoded(PROVIDERS))),
    ("x: @", encoded(encoded(f"key={PROVIDERS}"))),
    ("x: @", encoded(encoded(f"a key: {PROVIDERS}, and more"))),
    ("x: @", encoded(encoded("t:" + fake("ghp_", 36)))),
]


@pytest.mark.parametrize(("text", "secret"), GONE)
def test_the_credential_goes_and_the_rest_stays(text: str, secret: str) -> None:
    """Whatever names it; and a second time nothing more goes."""
    written = text.replace("@", secret, 1) if "@" in text else text
    redacted = REDACTOR.text(written)
    assert secret not in redacted
    assert MARK in redacted
    assert REDACTOR.text(redacted) == redacted
    assert redacted[:2] == written[:2] or written.startswith("----")


KEPT = [
    "the password is wrong",
    "--password-stdin",
    "--token <your-token>",
    "--api-key $API_KEY",
    "--token ${{ secrets.X }}",
    "--token xxx",
    '--token "$TOKEN"',
    "use --token to pass the token",
    "the --token option is required",
    "--password prompts for it",
    "information can be given by the --username and --password options",
    "--token TOKEN   the token to use",
    "--api-key KEY",
    "  --token string   API token",
    "  --token letters  The token",
    "--token=TOKEN",
    "--token=your-token",
    "--token and --user are exclusive",
    "--max-tokens hundred",
    "--token-file secrets",
    'parser.add_argument("--token", help="the token")',
    'parser.add_argument("--token", "--auth")',
    "PASSWORD=password",
    "DB_PASSWORD=changeme",
    'DB_PASSWORD="$(cat some file)"',
    '<input type="password" value="">',
    '<input type="password" placeholder="Password">',
    '<input type="text" value="hello">',
    '<input type="password" value="{{ password }}">',
    '<input type="submit" value="Login"> <input type="password">',
    "<password>password</password>",
    "user,password,role\n",
    "user, password, role\nanother, line2x3y4, here\n",
    "    user, password,\n    other, thing2x3y,\n",
    '    "password",\n    "identify_hasher",\n',
    "name,token_count\na,12\nb,13\n",
    "| Option | Password |\n|---|---|\n| required | yes |\n| min length | 8 |",
    "| name | password |\n|---|---|\n| ann | |\n",
    "username,password\nann,xxx\n",
    "username,password\n$USER,$PASS\n",
    "machine learning login page password reset2",
    "localhost:5432:mydb",
    "a.py:1234:5:E501:too2long",
    "kind: ConfigMap\ndata:\n  db: aHVudGVyMg==\n",
    "kind: SecretStore\ndata:\n  a: aHVudGVyMg==\n",
    "kind: Secret\nmetadata:\n  name: db-credentials\ntype: Opaque\n",
    "kind: Secret\n---\nkind: ConfigMap\ndata:\n  a: aHVudGVyMg==\n",
    "kind: List\nitems:\n- kind: Secret\n  x: y\n- kind: ConfigMap\n  data:\n    db: aHVudGVyMg==\n",
    "kubectl create secret generic x --from-literal=key=$VALUE",
    "ldapsearch -x -W",
    "sqlplus / as sysdba",
    "rsync -u a:b c:d",
    "http -a x",
    "jdbc:oracle:thin:@h:1521:x",
    "a=b;password=value;",
    "psql -h localhost -U ann password",
    "password   and more words",
    encoded(encoded("a text within a text, and there is nothing in it to hide at all")),
]


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_one_stays(text: str) -> None:
    """Placeholders, references, help texts, tables about passwords, lists in programs."""
    assert REDACTOR.text(text) == text


# Arguments in lists, and Secrets of Kubernetes as JSON: each with `@` for the credential.
IN_OBJECTS: list[tuple[JsonValue, str]] = [
    (["-y", "server", "--api-key", "@", "-v"], KEY),
    ({"command": "npx", "args": ["--password", "@", "--verbose", "build"]}, PASSWORD),
    (["run", "--header", "--token", "@"], KEY),
    ({"kind": "Secret", "data": {"db": "@"}}, encoded(WORD)),
    ({"kind": "Secret", "stringData": {"url": "@"}}, PASSWORD),
    (
        {"kind": "List", "items": [{"kind": "Secret", "type": "Opaque", "data": {"a": "@", "b": "@"}}]},
        encoded(KEY),
    ),
]


@pytest.mark.parametrize(("value", "secret"), IN_OBJECTS)
@pytest.mark.parametrize("in_text", [False, True])
def test_what_an_object_says_of_its_texts(value: JsonValue, secret: str, *, in_text: bool) -> None:
    """Only the credential goes, from objects as from the JSON of one in a text."""
    written = json.dumps(value)
    given = written.replace("@", secret) if in_text else json.loads(written.replace("@", secret))
    want = written.replace("@", MARK) if in_text else json.loads(written.replace("@", MARK))
    assert REDACTOR.value({"text": given}) == {"text": want}


OBJECTS_KEPT: list[JsonValue] = [
    ["run", f"--token={MARK}", "build", "--all"],
    ["--token", "--verbose"],
    ["deploy", "--api-key", "$API_KEY", "--force"],
    {"kind": "ConfigMap", "data": {"db": encoded(WORD)}},
    {"kind": "Secret", "metadata": {"name": WORD}, "type": "Opaque"},
    {"kind": "SecretStore", "data": {"db": encoded(WORD)}},
]


@pytest.mark.parametrize("value", OBJECTS_KEPT)
def test_what_an_object_does_not_say(value: JsonValue) -> None:
    """The next option, the value of another, what a Secret is called: these stay."""
    assert REDACTOR.value({"value_of_it": value}) == {"value_of_it": value}
