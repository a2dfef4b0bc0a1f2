"""Judging: evaluate, statistics, reports and their comparison."""
