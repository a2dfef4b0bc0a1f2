"""A generated set of tasks in GAIA's form that needs no licence, no key and no network."""
