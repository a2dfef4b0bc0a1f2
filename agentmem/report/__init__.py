"""What a person sees: console tables and displays of a run under way."""
