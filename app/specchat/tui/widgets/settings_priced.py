"""The field of the settings panel that says what its number costs."""

from __future__ import annotations

from collections.abc import Callable

from specchat.tui.widgets.settings_fields import NumberField


class PricedField(NumberField):
    """A number of which a line below says what it costs."""

    _price: Callable[[float], str] | None = None

    def tell_price(self, price: Callable[[float], str]) -> None:
        """`price` gives what to say of a number; empty for nothing."""
        self._price = price
        self._tell()

    def put(self, value: object) -> None:
        super().put(value)
        self._tell()

    def on_input_changed(self) -> None:
        self._tell()

    def _tell(self) -> None:
        try:
            value = self.read()
        except ValueError:
            value = None
        self.hint(self._price(value) if self._price is not None and isinstance(value, float) else "")
