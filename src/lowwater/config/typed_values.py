"""Typed access to settings by name."""

from __future__ import annotations

import builtins

from lowwater.config.setting import Value


class TypedValues:
    """Access by name and type. A wrong name or type is a bug, not a user's mistake."""

    __slots__ = ()

    def value(self, name: builtins.str) -> Value | None:
        raise KeyError(name)

    def int(self, name: builtins.str) -> builtins.int:
        value = self.value(name)
        assert type(value) is builtins.int, name
        return value

    def bool(self, name: builtins.str) -> builtins.bool:
        value = self.value(name)
        assert isinstance(value, builtins.bool), name
        return value

    def float(self, name: builtins.str) -> builtins.float:
        value = self.value(name)
        assert isinstance(value, builtins.float), name
        return value

    def str(self, name: builtins.str) -> builtins.str:
        value = self.value(name)
        assert isinstance(value, builtins.str), name
        return value

    def list(self, name: builtins.str) -> tuple[builtins.str, ...]:
        """Empty when not set."""
        value = self.value(name)
        assert value is None or isinstance(value, tuple), name
        return value or ()

    def maybe_str(self, name: builtins.str) -> builtins.str | None:
        return None if self.value(name) is None else self.str(name)
