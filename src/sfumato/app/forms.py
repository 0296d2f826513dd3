"""Forms: what a browser posted, and the elements that forms are made of."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from sfumato.errors import UsageError
from sfumato.report.html import Markup, element

MOST_BYTES = 8 << 20  # of a form; a table of 500 columns needs far less
MOST_FIELDS = 20_000


class PostedForm:
    """The fields of a form, as text."""

    def __init__(self, body: bytes) -> None:
        try:
            self._fields = parse_qs(
                body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
            )
        except (UnicodeDecodeError, ValueError):
            raise UsageError("the form cannot be read. Load the page again.") from None

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def text(self, name: str, default: str = "") -> str:
        """The text of a field, with line ends as they are in Python."""
        return self._fields.get(name, [default])[0].replace("\r\n", "\n")

    def texts(self, name: str) -> list[str]:
        return self._fields.get(name, [])

    def whole(self, name: str) -> int | None:
        """A whole number; None if the field is empty."""
        text = self.text(name).strip()
        if not text:
            return None
        try:
            return int(text)
        except ValueError:
            raise UsageError("this field needs a whole number. Write one in digits.") from None

    def number(self, name: str) -> float | None:
        """A number, with a decimal point or comma; None if the field is empty."""
        text = self.text(name).strip().replace(",", ".")
        if not text:
            return None
        try:
            return float(text)
        except ValueError:
            raise UsageError("this field needs a number. Write one in digits.") from None


def hidden(name: str, value: str | int) -> Markup:
    return element("input", type="hidden", name=name, value=str(value))


def button(label: object, *, look: str = "", **attributes: str | bool | None) -> Markup:
    return element("button", label, type="submit", class_=f"button {look}".strip(), **attributes)


def link_button(label: object, address: str, *, look: str = "") -> Markup:
    return element("a", label, href=address, class_=f"button {look}".strip())


def field(label: object, inside: Markup, *, hint: object = "", look: str = "") -> Markup:
    """A label with its control inside, and what helps to fill it in."""
    helped = element("span", hint, class_="hint") if hint else ""
    return element("label", element("span", label, class_="name"), inside, helped, class_=f"field {look}".strip())


def select(
    name: str, options: Mapping[str, object], chosen: str, *, auto: bool = False, **attributes: str | bool | None
) -> Markup:
    """A list to choose from. auto: the form is sent as soon as something is chosen."""
    made = [element("option", text, value=value, selected=value == chosen) for value, text in options.items()]
    return element("select", *made, name=name, data_auto=auto, **attributes)


def text_input(name: str, value: object = "", **attributes: str | bool | None) -> Markup:
    return element("input", type=attributes.pop("type", "text"), name=name, value=str(value), **attributes)


def checkbox(name: str, value: str, label: object, *, checked: bool, **attributes: str | bool | None) -> Markup:
    box = element("input", type="checkbox", name=name, value=value, checked=checked, **attributes)
    return element("label", box, " ", element("span", label), class_="check")


def radio_group(
    name: str, legend: object, options: Mapping[str, object], chosen: str, *, auto: bool = False, look: str = ""
) -> Markup:
    """A few choices side by side, one of which is taken."""
    made = [
        element(
            "label",
            element("input", type="radio", name=name, value=value, checked=value == chosen, data_auto=auto),
            element("span", text),
        )
        for value, text in options.items()
    ]
    return element("fieldset", element("legend", legend), *made, class_=f"choices {look}".strip())
