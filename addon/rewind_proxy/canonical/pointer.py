"""Where a value stands in a JSON document: cheap to build on a walk, written as a JSON path when asked."""

from __future__ import annotations

import re
from typing import NamedTuple

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Pointer(NamedTuple):
    """A place, linked to the place that holds it, so that a step down costs the same at any depth."""

    parent: Pointer | None = None
    step: str | int = ""

    def member(self, name: str) -> Pointer:
        """The member `name` of the object here."""
        return Pointer(self, name)

    def item(self, index: int) -> Pointer:
        """The item `index` of the array here."""
        return Pointer(self, index)

    def below(self, base: Pointer) -> Pointer:
        """This place in a document that stands at `base` of a larger one."""
        return base if self.parent is None else Pointer(self.parent.below(base), self.step)

    def __str__(self) -> str:
        """`$.messages[0].parts[1].text`; a name that is no identifier is bracketed and quoted."""
        steps: list[str] = []
        here = self
        while here.parent is not None:
            if isinstance(here.step, int):
                steps.append(f"[{here.step}]")
            elif _IDENTIFIER.fullmatch(here.step):
                steps.append(f".{here.step}")
            else:
                quoted = here.step.replace("\\", "\\\\").replace("'", "\\'")
                steps.append(f"['{quoted}']")
            here = here.parent
        return "$" + "".join(reversed(steps))


ROOT = Pointer()
