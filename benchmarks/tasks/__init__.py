"""Benchmarks as task sets: a pinned revision, its columns, a usual reward, and a fixture written for this project.

    agentmem eval benchmarks/tasks/gsm8k.py --model openai/gpt-4.1-mini --limit 100
    agentmem eval benchmarks/tasks/gsm8k.py --model scripted/coin --fixture

No data set is in this repository. The fixtures are our own: not one of their questions is in a data set.
"""
