"""Every public name of ``td.channels`` is what it says, whatever was imported before it."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import tetraodon as td


def test_no_module_takes_the_place_of_a_function() -> None:
    modules = {m.name for m in pkgutil.iter_modules(td.channels.__path__)}
    assert not modules & set(td.channels.__all__)
    for name in sorted(modules):
        importlib.import_module(f"tetraodon.channels.{name}")
    for name in td.channels.__all__:
        thing = getattr(td.channels, name)
        assert callable(thing) and not isinstance(thing, ModuleType), name


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'laplace'"):
        _ = td.channels.laplace
