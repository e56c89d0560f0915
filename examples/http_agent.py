"""An agent in forty lines: it proposes a call over HTTP, waits for people, runs what they cleared, reports.

CLEARANCE_URL=http://127.0.0.1:8000 CLEARANCE_KEY=clr_… python http_agent.py KEY TO TEXT
"""

import json
import os
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

URL, KEY = os.environ["CLEARANCE_URL"], os.environ["CLEARANCE_KEY"]


def call(method, path, body=None):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{URL}/api/v1/calls{path}", data, headers, method=method), timeout=70) as answer:
        return json.load(answer)


def send(to, text):
    print(f"sending to {to}: {text}")
    return {"sent_to": to}


def main(key, to, text):
    stands = call("POST", "", {"key": key, "tool": "send", "arguments": {"to": to, "text": text}})
    while stands["state"] == "held":
        print(f"review {stands['review_id']} waits", flush=True)
        stands = call("GET", f"/{key}?wait=60")
    if not stands["may_take"]:
        return print(f"{stands['state']}: {stands['result']}")
    taken = call("POST", f"/{key}/take")  # from here on it is up to us: once, with exactly these arguments
    result = send(**taken["args"])
    stands = call("POST", f"/{key}/outcome", {"attempt": taken["attempt"], "ok": True, "result": result})
    print(stands["state"])


try:
    main(*sys.argv[1:])
except HTTPError as error:
    sys.exit(json.load(error)["detail"])
