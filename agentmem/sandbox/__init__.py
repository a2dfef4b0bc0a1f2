"""Killable processes with limits, in which code runs that may fail, hang or eat."""
