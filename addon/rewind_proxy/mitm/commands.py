"""Commands for the command bars of mitmproxy and mitmweb, and for scripts (`ctx.master.commands.call`).

What they say is a list of lines: mitmproxy's console shows one as a table, and a lone text letter by letter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, cast, get_args

from mitmproxy import command, ctx, exceptions, http, types
from mitmproxy.flow import Flow

from rewind_proxy.canonical.model import Mode
from rewind_proxy.errors import RewindError
from rewind_proxy.explain.words import number, plural
from rewind_proxy.mitm import labels
from rewind_proxy.mitm.runtime import Runtime
from rewind_proxy.mitm.views import Views
from rewind_proxy.store.records import StepRecord

F = TypeVar("F", bound=Callable[..., Any])

_SHORT = 12
_NOT_OVER = "its step is not over, or not in this log"


class Owner(Protocol):
    """What the commands need to know of the add-on they belong to."""

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        ...


def _command(name: str) -> Callable[[F], F]:
    """mitmproxy's decorator, which has no types."""
    return cast("Callable[[F], F]", command.command(name))


def _argument(name: str, kind: types.Choice) -> Callable[[F], F]:
    """The same of what an argument may be."""
    return cast("Callable[[F], F]", command.argument(name, kind))


class Commands:
    """An add-on beside the one that decides."""

    name = "rewind_commands"

    def __init__(self, owner: Owner, views: Views) -> None:
        self._owner = owner
        self._views = views

    @_command("rewind.mode.options")
    def mode_options(self) -> Sequence[str]:
        """The modes that `rewind.mode` takes."""
        return list(get_args(Mode))

    @_command("rewind.mode")
    @_argument("mode", types.Choice("rewind.mode.options"))
    def set_mode(self, mode: str = "") -> Sequence[str]:
        """Show Rewind's mode, or set it: auto, replay, record or passthrough."""
        if mode:
            try:
                ctx.options.update(rewind_mode=mode)
            except exceptions.OptionsError as error:
                raise exceptions.CommandError(str(error)) from error
        return [self._owner.mode]

    @_command("rewind.explain")
    def explain(self, flow: Flow) -> Sequence[str]:
        """Explain how Rewind answered a call, or why it could not."""
        try:
            explanation = self._views.explanation(_http(flow))
        except RewindError as error:
            raise exceptions.CommandError(f"rewind: {error}") from error
        if explanation is None:
            raise exceptions.CommandError(f"rewind: nothing is known of this flow: {_NOT_OVER}")
        return [each.text for each in explanation.lines()]

    @_command("rewind.forget")
    def forget(self, flows: Sequence[Flow]) -> Sequence[str]:
        """Delete the recordings that answer these calls: asked again, each is a miss."""
        runtime, steps = self._steps(flows)
        try:
            recordings, aliases = runtime.forget(steps)
        except RewindError as error:
            raise exceptions.CommandError(f"rewind: {error}") from error
        said = [f"{plural(recordings, 'recording')} deleted"]
        if aliases:
            said.append("1 alias removed" if aliases == 1 else f"{number(aliases)} aliases removed")
        if recordings and runtime.settings.cassettes:
            said.append("their files in the folder `cassettes` go when the proxy ends")
        return said

    @_command("rewind.rerecord")
    def rerecord(self, flows: Sequence[Flow]) -> Sequence[str]:
        """Record these calls anew: asked next, each goes live once, and its answer replaces the recorded.

        Nothing is sent before: Rewind keeps no credentials that it could send.
        """
        if self._owner.mode in ("replay", "passthrough"):
            raise exceptions.CommandError(
                f"rewind: mode {self._owner.mode} records nothing: set another first (rewind.mode auto)"
            )
        runtime, steps = self._steps(flows)
        calls = [step for step in steps if step.cls == "model" and step.exact]
        if not calls:
            raise exceptions.CommandError("rewind: none of these is a call to a model that was read")
        marked = runtime.rerecord(calls)
        return [f"{plural(marked, 'call')} will be recorded anew when asked next"]

    @_command("rewind.approve")
    def approve(self, flow: Flow) -> Sequence[str]:
        """Have the best candidate answer a refused call from now on: it is answered by an alias."""
        runtime, [step] = self._steps([flow])
        if step.tier != "miss" or step.cls != "model":
            raise exceptions.CommandError("rewind: only a model call that was refused can be approved")
        try:
            alias = runtime.approve(step, time.time())
        except RewindError as error:
            raise exceptions.CommandError(f"rewind: {error}") from error
        return [f"{alias.id[:_SHORT]} is answered by {alias.cassette[:_SHORT]} (tier alias)"]

    def _steps(self, flows: Sequence[Flow]) -> tuple[Runtime, list[StepRecord]]:
        """The steps of flows; those that are none of ours are left out, but for one at least."""
        try:
            runtime = self._views.runtime()
        except RewindError as error:
            raise exceptions.CommandError(f"rewind: {error}") from error
        found = [*_known(flows, runtime)]
        if not found:
            raise exceptions.CommandError(f"rewind: nothing is known of these flows: {_NOT_OVER}")
        return runtime, found


def _known(flows: Iterable[Flow], runtime: Runtime) -> Iterable[StepRecord]:
    for flow in flows:
        step = runtime.step_record(str(flow.metadata.get(labels.STEP, "")))
        if step is not None:
            yield step


def _http(flow: Flow) -> http.HTTPFlow:
    if not isinstance(flow, http.HTTPFlow):
        raise exceptions.CommandError("rewind: this is no HTTP flow")
    return flow
