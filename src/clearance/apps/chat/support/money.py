"""Money as the support desk writes it: euros with two decimals, such as 49.90; never a float."""

import re

CURRENCY = "EUR"

# One spelling for each amount, so that equal amounts are equal texts; zero is not one of them.
AMOUNT = r"^(?:[1-9][0-9]{0,6}\.[0-9]{2}|0\.(?:0[1-9]|[1-9][0-9]))$"


def to_cents(amount: str) -> int:
    """Return the cents of an amount that matches `AMOUNT`; raises `ValueError` for any other."""
    if not re.fullmatch(AMOUNT, amount) or amount.endswith("\n"):  # which `$` lets pass
        raise ValueError("An amount is written in euros with two decimals, such as 49.90.")
    return int(amount.replace(".", ""))


def from_cents(cents: int) -> str:
    """Return an amount of cents, zero or more, as it is written."""
    return f"{cents // 100}.{cents % 100:02}"
