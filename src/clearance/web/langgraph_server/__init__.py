"""A part of the LangGraph server's API, so that front ends made for it work unchanged.

Agent Chat UI and Agent Inbox may say what a person says and decides, and nothing else of what it can do.
"""

from clearance.web.langgraph_server import runs, threads

ROUTERS = (threads.router, runs.router)
