"""The pipeline as a picture: Mermaid text, for documents and for whoever asks what comes next."""

STAGES = (
    "sequence",
    "literature",
    "method_kb",
    "planner",
    "hitl_plan",
    "hitl_execute",
    "analyst",
    "reporter",
)


def mermaid() -> str:
    """Return the one graph there is, with its two gates."""
    return """\
flowchart LR
    sequence --> literature --> method_kb --> planner --> hitl_plan
    hitl_plan{{"hitl_plan · S4_plan"}}
    hitl_execute{{"hitl_execute · S5_execute"}}
    hitl_plan -->|approve| hitl_execute
    hitl_plan -->|revise| planner
    hitl_plan -->|reject| rejected([hitl_rejected])
    hitl_execute -->|nothing reaches further, or approve| analyst
    hitl_execute -->|reject| rejected
    analyst -->|costs more than approved| hitl_execute
    analyst --> reporter --> done([done])
"""
