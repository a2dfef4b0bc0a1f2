"""What is remembered: how texts are compared by meaning."""
