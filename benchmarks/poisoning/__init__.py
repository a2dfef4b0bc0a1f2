"""Attacks on a case bank, and what the defences of the library do about each."""
