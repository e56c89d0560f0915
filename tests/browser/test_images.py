"""`make images`: the pictures are of real pages, and small enough to be kept."""

from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from tests.browser import images


def test_a_picture_is_taken_and_small(browser: Browser, tmp_path: Path) -> None:
    [(name, content)] = images.taken(browser, tmp_path, names=["inbox-narrow"])
    assert name == "inbox-narrow"
    assert len(content) <= images.MOST_BYTES
    assert Image.open(BytesIO(content)).size[0] == 390
