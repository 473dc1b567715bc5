"""Names of the design that later versions fill: each refuses by name."""

from __future__ import annotations

from typing import NoReturn

from .errors import Unsupported


class _Later:
    """A public name that is reserved: calling it, or reaching into it, is refused by name."""

    def __init__(self, name: str, instead: str) -> None:
        self._name = name
        self._instead = instead

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise Unsupported(f"{self._name}: not available in this version; {self._instead}")

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        raise Unsupported(f"{self._name}.{attribute}: not available in this version; {self._instead}")


frontier = _Later("frontier", "use Session.plan for each epsilon.")
