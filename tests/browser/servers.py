"""Servers in processes of their own, and inboxes that are open at them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.browser.site import OWNER, Site, Tab


@contextmanager
def server(url: str, home: Path, *, port: int = 0) -> Iterator[str]:
    """Serve the pages from a process of its own, which is killed at the end; give its address."""
    command = [sys.executable, "-m", "clearance", "--home", str(home), "serve", "--no-worker"]
    command += ["--port", str(port), "--json"]
    environment = {**os.environ, "CLEARANCE_DATABASE_URL": url, "CLEARANCE_PERSON": OWNER}
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        told = (json.loads(line) for line in process.stdout)
        yield next(each["url"] for each in told if each["event"] == "serving")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def tab_at(browser: Browser, site: Site) -> Iterator[Page]:
    """Give an inbox that is open at a server, and told of what happens."""
    context = browser.new_context()
    context.set_default_timeout(60_000)
    site.sign_in((tab := Tab.of(context, site)).page)
    try:
        page = tab.live()
        page.evaluate("window.same = true")
        yield page
    finally:
        context.close()
