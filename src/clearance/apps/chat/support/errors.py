"""What the support desk says when it does not do what it was asked."""


class SupportError(Exception):
    """Nothing was done; the message says why and what would work."""
