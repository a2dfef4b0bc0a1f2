"""The helper process of a `Worker`: started by its path, standard library only.

Arguments: the file whose `handle(payload)` answers, the address space in MB, the descriptors of requests and
replies.
Protocol: one JSON value per line each way, after one `{"ready": true}`. It has pipes of its own, because a library
may print to standard output, which goes nowhere here, like standard error.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import sys
import threading
import time
from typing import TextIO


def main(path: str, memory_mb: int, requests_fd: int, replies_fd: int) -> None:
    """Answer requests until the pipe is closed."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
    spec = importlib.util.spec_from_file_location("agentmem_worker_code", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    with (
        os.fdopen(requests_fd, encoding="utf-8") as requests,
        os.fdopen(replies_fd, "w", encoding="utf-8") as replies,
    ):
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            return _say(replies, {"error": f"{type(error).__name__}: {error}"})
        _say(replies, {"ready": True})
        for line in requests:
            try:
                reply = {"result": module.handle(json.loads(line))}
            except Exception as error:
                reply = {"error": f"{type(error).__name__}: {str(error)[:500]}"}
            _say(replies, reply)


def _say(replies: TextIO, value: object) -> None:
    replies.write(json.dumps(value) + "\n")
    replies.flush()


def _end_with_parent(parent: int) -> None:
    """A killed parent closes the pipe, but who computes for ever does not read it."""
    while os.getppid() == parent:
        time.sleep(2.0)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
