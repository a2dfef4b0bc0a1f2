"""The command line: one file per verb. Data goes to standard output, progress to standard error."""

from agentmem.cli.main import main

__all__ = ["main"]
