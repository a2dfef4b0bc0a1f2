"""A run on disk: directory, journal, durable steps, resume and the budget's ledger."""
