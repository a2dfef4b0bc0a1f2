"""Talking to language models: the protocol, the adapters, and the one gateway around them."""
