"""Notices: telling others what happened, one file for each channel."""
