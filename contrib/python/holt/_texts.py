# SPDX-License-Identifier: Apache-2.0
"""Types that are text in JSON: times, UUIDs and decimals. Errors have the same texts as pydantic's."""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from typing import Any, Dict

_TEXT: Dict[str, Any] = {"type": "string"}

SCHEMAS: Dict[Any, Dict[str, Any]] = {
    datetime.datetime: {**_TEXT, "format": "date-time"}, datetime.date: {**_TEXT, "format": "date"},
    datetime.time: {**_TEXT, "format": "time"}, datetime.timedelta: {**_TEXT, "format": "duration"},
    uuid.UUID: {**_TEXT, "format": "uuid"}, decimal.Decimal: {"anyOf": [{"type": "number"}, _TEXT]},
}
"""The JSON schema of each type."""

_NAMES = {
    datetime.datetime: "datetime", datetime.date: "date", datetime.time: "time", datetime.timedelta: "timedelta",
    uuid.UUID: "UUID", decimal.Decimal: "decimal",
}

_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,6})?)S)?)?$"
)
_CLOCK = re.compile(
    r"(?P<sign>[-+]?)(?:(?P<days>\d+) ?(?:d|days?),? ?)?(?P<hours>\d+):(?P<minutes>\d\d)(?::(?P<seconds>\d\d(?:\.\d{1,6})?))?$"
)


def _duration(text: str) -> datetime.timedelta:
    found = _DURATION.match(text) or _CLOCK.match(text)
    if not found or text.rstrip("T")[-1] in "P+-":
        raise ValueError(text)
    parts = found.groupdict()
    sign = -1 if parts.pop("sign") == "-" else 1
    return sign * datetime.timedelta(**{unit: float(number) for unit, number in parts.items() if number})


def _of_text(text: str, kind: Any) -> Any:
    text = text.strip()
    if kind is datetime.timedelta:
        return _duration(text)
    if kind in (uuid.UUID, decimal.Decimal):
        return kind(text)
    if kind is datetime.datetime and re.match(r"[-+]?\d+(\.\d*)?$", text):
        return _of_number(float(text), kind)
    if len(text) > 40:  # Python 3.11 ignores the rest
        raise ValueError(text)
    if kind in (datetime.datetime, datetime.time) and text[-1:] in ("Z", "z"):
        text = text[:-1] + "+00:00"  # Python before 3.11 does not know Z
    text = re.sub(r"(\.\d{1,6})\d*", lambda m: f"{m[1]:0<7}", text)
    return kind.fromisoformat(text)


def _of_number(number: Any, kind: Any) -> Any:
    if kind is decimal.Decimal:
        return decimal.Decimal(str(number))
    if kind is datetime.timedelta:
        return datetime.timedelta(seconds=number)
    if kind is datetime.datetime:  # milliseconds, if it is too large for seconds
        seconds = number / 1000 if abs(number) > 2e10 else number
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    if kind is datetime.date and _of_number(number, datetime.datetime).time() == datetime.time():
        return _of_number(number, datetime.datetime).date()
    if kind is datetime.time and 0 <= number < 86400:
        return _of_number(number, datetime.datetime).timetz()
    raise TypeError(number)


def of_json(value: Any, kind: Any) -> Any:
    """Converts a value to one of these types. Raises ValueError."""
    if isinstance(value, kind) and not (kind is datetime.date and isinstance(value, datetime.datetime)):
        return value
    try:
        if kind is datetime.datetime and isinstance(value, datetime.date):
            made = datetime.datetime(value.year, value.month, value.day)
        elif isinstance(value, str):
            made = _of_text(value, kind)
        elif isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
            made = _of_number(value if kind is decimal.Decimal else float(value), kind)
        else:
            raise TypeError(value)
    except (TypeError, ValueError, OSError, OverflowError, decimal.InvalidOperation):
        raise ValueError(f"Input should be a valid {_NAMES[kind]}") from None
    if isinstance(made, decimal.Decimal) and not made.is_finite():
        raise ValueError("Input should be a finite number")
    return made


def to_json(value: Any) -> "str | None":
    """Returns the text of a value of these types, or None for another value."""
    if isinstance(value, datetime.timedelta):
        return _duration_text(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return re.sub(r"\+00:00$", "Z", value.isoformat())
    return str(value) if isinstance(value, (uuid.UUID, decimal.Decimal)) else None


def _duration_text(value: datetime.timedelta) -> str:
    left = abs(value)
    minutes, seconds = divmod(left.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    exact = f"{seconds}.{left.microseconds:06}".rstrip("0").rstrip(".")
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (exact, "S")) if str(n) != "0")
    whole = (f"{left.days}D" if left.days else "") + (f"T{clock}" if clock else "")
    return ("-" if value.days < 0 else "") + "P" + (whole or "T0S")
