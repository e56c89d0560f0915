"""The report of a run: written from the run's own records, and from nothing else.

proceedings   what the database says of the run, kept as a file before anything is written from it
facts         each text of a report with its source; shown, tables and figures take them from the steps' files
outline       what is said, in its order; pages draws it as HTML and Markdown, crate as a research object
tracing       reads the finished report again; what cannot be traced stops it
"""

from clearance.apps.research.report.writer import open_reporter

__all__ = ["open_reporter"]
