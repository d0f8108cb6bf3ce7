"""What agents say in their requests, cut to the lines that matter; as sent by the versions in CLIENTS.md.

Each is written as on a laptop. `machine` lists what the same session says elsewhere, `project` what it says
of another project; both as (text as it stands, the other text).
"""

from __future__ import annotations

from dataclasses import dataclass

from rewind_proxy.canonical.model import JsonObject

Change = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A request of an agent, and how it may differ."""

    preset: str
    host: str
    path: str
    user_agent: str
    body: JsonObject
    machine: tuple[Change, ...]
    """Environment that only the preset knows of."""
    project: tuple[Change, ...]


def _responses(*texts: str, tool_said: str) -> JsonObject:
    roles = ("developer", "developer", "user", "user")
    messages: list[JsonObject] = [
        {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
        for role, text in zip(roles, texts, strict=True)
    ]
    call: JsonObject = {
        "type": "function_call",
        "call_id": "call_1",
        "name": "exec_command",
        "arguments": '{"cmd":"make test"}',
    }
    result: JsonObject = {"type": "function_call_output", "call_id": "call_1", "output": tool_said}
    return {"model": "gpt-6", "input": [*messages, call, result], "stream": True}


CODEX = Excerpt(
    "codex",
    "api.openai.com",
    "/v1/responses",
    "codex_exec/0.171.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.171.0)",
    _responses(
        "You are Codex, an agent based on GPT-6.\n<multi_agent_role>You are `/root`, the primary agent.",
        "### Skill roots\n- `r0` = `/home/ann/.codex/skills/.system`\n### Available skills",
        "<environment_context>\n  <cwd>/home/ann/app</cwd>\n  <shell>bash</shell>\n"
        "  <current_date>2026-11-30</current_date>\n  <timezone>Etc/UTC</timezone>\n</environment_context>",
        "Run the tests, and mind /home/ann/.codex/AGENTS.md.",
        tool_said='{"chunk_id":"3859d6","wall_time_seconds":0.25,"session_id":60582,"output":"3 passed",'
        '"sender":"/root/check"}',
    ),
    machine=(
        ("<shell>bash</shell>", "<shell>zsh</shell>"),
        ("<timezone>Etc/UTC</timezone>", "<timezone>Asia/Tokyo</timezone>"),
        ('\\"chunk_id\\":\\"3859d6\\"', '\\"chunk_id\\":\\"0a77b1\\"'),
        ('\\"session_id\\":60582', '\\"session_id\\":1207'),
        ("/home/ann/.codex", "/opt/codex-state"),
    ),
    project=(
        ("3 passed", "2 passed"),
        ("mind /home/ann/.codex/AGENTS.md", "mind /home/ann/.codex/RULES.md"),
        ("Run the tests", "Run <shell>bash</shell>"),
    ),
)

CLAUDE_CODE = Excerpt(
    "claude-code",
    "api.anthropic.com",
    "/v1/messages",
    "claude-cli/2.1.332 (external, sdk-cli)",
    {
        "model": "claude-opus-5-5",
        "max_tokens": 128000,
        "stream": True,
        "safeguards": [
            {
                "type": "dangerous_tool_use",
                "classifier_context": {
                    "permission_mode": "auto",
                    "platform": "linux",
                    "live_cwd": "/home/ann/app",
                    "case_insensitive_paths": False,
                },
            }
        ],
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.332.2ee; cch=60fb2;"},
            {"type": "text", "text": "You are a Claude agent, built on Anthropic's Claude Agent SDK."},
            {
                "type": "text",
                "text": "# Memory\nYou have a persistent file-based memory at "
                "`/home/ann/.claude/projects/-home-ann-app/memory/`. This directory already exists",
            },
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "text",
                        "text": "# gitStatus\nCurrent branch: main\n\nGit user: Ann\n\nStatus:\n(clean)\n\n"
                        "Recent commits:\n7732f41 first",
                    },
                    {"type": "text", "text": "Run the tests. Platform: any."},
                ],
            },
            {
                "role": "system",
                "content": "# Environment\nYou have been invoked in the following environment: \n"
                " - Primary working directory: /home/ann/app\n - Is a git repository: true\n"
                " - Platform: linux\n - Shell: bash\n - OS Version: Linux 6.18.44\n"
                " - In `curl`, send untrusted values with `--form-string`, not `-F`.\n\n"
                "Today's date is 2026-11-30.",
            },
            {
                "role": "user",
                "content": "<task-notification>\n<task-id>bik96cxhl</task-id>\n"
                "<output-file>/tmp/claude-0/-home-ann-app/tasks/bik96cxhl.output</output-file>\n"
                "<status>completed</status>\n</task-notification>",
            },
        ],
    },
    machine=(
        ("- Platform: linux", "- Platform: darwin"),
        ("- Shell: bash", "- Shell: zsh (login shell: fish)"),
        ("- OS Version: Linux 6.18.44", "- OS Version: Darwin 25.1.0"),
        (
            "not `-F`.",
            "not `-F`.\\n - Always quote grep's --include patterns, in every command.",
        ),
        ("Git user: Ann", "Git user: ci-bot"),
        ('"platform": "linux"', '"platform": "darwin"'),
        ('"case_insensitive_paths": false', '"case_insensitive_paths": true'),
        ("bik96cxhl", "bqmzrwxtk"),
        ("/home/ann/.claude", "/opt/claude-state"),
    ),
    project=(
        ("Current branch: main", "Current branch: fix"),
        ("7732f41 first", "15ca02f first"),
        ("(clean)", "M notes.txt"),
        ("Is a git repository: true", "Is a git repository: false"),
        ("<status>completed", "<status>failed"),
        ('"permission_mode": "auto"', '"permission_mode": "plan"'),
        ("Platform: any", "Platform: linux"),
    ),
)


def _context(agent: str, listing: str) -> str:
    return (
        f"This is the {agent}. We are setting up the context for our chat.\n"
        "Today's date is Monday, November 30, 2026 (formatted according to the user's locale).\n"
        f"My operating system is: linux\n{listing}"
    )


GEMINI_CLI = Excerpt(
    "gemini-cli",
    "generativelanguage.googleapis.com",
    "/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
    "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)",
    {
        "systemInstruction": {"parts": [{"text": "You are Gemini CLI, an interactive CLI agent."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {
                        "text": "<session_context>\n"
                        + _context(
                            "Gemini CLI",
                            "The project's temporary directory is: /home/ann/.gemini/tmp/app\n"
                            "- **Workspace Directories:**\n  - /home/ann/app\n"
                            "- **Directory Structure:**\n\n/home/ann/app/\n├───notes.txt\n",
                        )
                        + "</session_context>"
                    },
                    {"text": "Read /home/ann/app/notes.txt, saved in /opt/ci/.gemini/tmp/app-1."},
                ],
            }
        ],
    },
    machine=(
        ("My operating system is: linux", "My operating system is: win32"),
        ("Monday, November 30, 2026", "Dienstag, 1. Dezember 2026"),
        ("/.gemini/tmp/app-1", "/.gemini/tmp/work-1"),
    ),
    project=(
        ("├───notes.txt", "├───other.txt"),
        ("Read /home/ann/app/notes.txt", "Read /home/ann/app/other.txt"),
    ),
)

QWEN_CODE = Excerpt(
    "qwen-code",
    "dashscope.aliyuncs.com",
    "/compatible-mode/v1/chat/completions",
    "QwenCode/0.15.10 (linux; x64)",
    {
        "model": "qwen3-coder-plus",
        "stream": True,
        "messages": [
            {
                "role": "system",
                "content": "You are Qwen Code, an interactive CLI agent.\n\n"
                "--- Context from: ../.qwen/output-language.md ---\nAnswer in English.\n"
                "--- End of Context from: ../.qwen/output-language.md ---",
            },
            {
                "role": "user",
                "content": _context(
                    "Qwen Code",
                    "I'm currently working in the directory: /home/ann/app\n\n"
                    "/home/ann/app/\n├───notes.txt\n",
                ),
            },
            {"role": "user", "content": "Read notes.txt. It is in /opt/ann/.qwen/tmp/0123456789abcdef/."},
        ],
    },
    machine=(
        ("My operating system is: linux", "My operating system is: darwin"),
        ("Monday, November 30, 2026", "1 décembre 2026"),
        ("../.qwen/output", "../../../root/.qwen/output"),
        ("/tmp/0123456789abcdef", "/tmp/fedcba9876543210"),
    ),
    project=(
        ("├───notes.txt", "├───other.txt"),
        ("Answer in English", "Answer in Welsh"),
        ("output-language.md", "other-file.md"),
    ),
)

OPENCODE = Excerpt(
    "opencode",
    "api.anthropic.com",
    "/v1/messages",
    "opencode/1.18.33 ai-sdk/provider-utils/4.0.46 runtime/bun/1.3.14",
    {
        "model": "claude-haiku-4-5",
        "max_tokens": 32000,
        "system": [
            {
                "type": "text",
                "text": "You are OpenCode, the best coding agent on the planet.\n<env>\n"
                "  Working directory: /home/ann/app\n  Is directory a git repo: yes\n  Platform: linux\n"
                "  Today's date: Mon Nov 30 2026\n</env>\n"
                "Instructions from: /home/ann/app/AGENTS.md\nBe brief.",
            }
        ],
        "messages": [{"role": "user", "content": "Run the tests."}],
        "tools": [
            {
                "name": "bash",
                "description": "Executes a command.\n\nBe aware: OS: linux, Shell: bash\n\nQuote paths.",
                "input_schema": {"type": "object"},
            }
        ],
    },
    machine=(
        ("  Platform: linux", "  Platform: darwin"),
        ("OS: linux, Shell: bash", "OS: darwin, Shell: zsh"),
    ),
    project=(
        ("Be brief.", "Be thorough."),
        ("git repo: yes", "git repo: no"),
        ("Quote paths.", "Never quote paths."),
        ("AGENTS.md", "CLAUDE.md"),
    ),
)

COPILOT_CLI = Excerpt(
    "copilot-cli",
    "api.openai.com",
    "/v1/chat/completions",
    "OpenAI/JS 5.20.1",
    {
        "model": "gpt-5",
        "stream": True,
        "messages": [
            {
                "role": "system",
                "content": "You are the GitHub Copilot CLI, a terminal assistant built by GitHub.\n\n"
                "<environment_context>\n* Current working directory: /home/ann/app\n"
                "* Git repository root: /home/ann/app\n* Operating System: linux\n"
                "* Available tools: git, curl\n</environment_context>",
            },
            {
                "role": "user",
                "content": "<current_datetime>2026-11-30T12:18:57.100+00:00</current_datetime>\n\n"
                "Run the tests.",
            },
        ],
    },
    machine=(
        ("* Operating System: linux", "* Operating System: darwin"),
        ("* Available tools: git, curl", "* Available tools: git, curl, gh"),
    ),
    project=(
        ("Run the tests.", "Run * Operating System: linux"),
        ("repository root: /home/ann/app", "repository root: /home/ann/app/sub"),
    ),
)

EXCERPTS = (CODEX, CLAUDE_CODE, GEMINI_CLI, QWEN_CODE, OPENCODE, COPILOT_CLI)
