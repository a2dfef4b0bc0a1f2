"""`python -m agentmem`."""

from agentmem.cli import main

if __name__ == "__main__":
    main()
