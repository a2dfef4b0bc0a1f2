"""Judging agents: reports that carry their uncertainty, and comparisons of two agents on the same tasks."""
