"""The pipeline's one way to other services: cached, limited, retried, recorded, replayed."""

from clearance.apps.research.http.cache import HttpCache
from clearance.apps.research.http.fetching import NOT_ASKED, Fetcher, Mode
from clearance.apps.research.http.pacing import Pace
from clearance.apps.research.http.recording import Recording
from clearance.apps.research.http.response import Body, Fetched, Origin

__all__ = ["NOT_ASKED", "Body", "Fetched", "Fetcher", "HttpCache", "Mode", "Origin", "Pace", "Recording"]
