"""The rows of a Parquet file, each with its place; and the values of a table as JSON has them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from agentmem.errors import InputError
from agentmem.task_sources.place import Place, Row

BATCH = 1024
"""Rows that are in memory at a time."""


def parquet_rows(file: BinaryIO, path: str | os.PathLike[str]) -> Iterator[Row]:
    """The rows, numbered from 1.

    Raises:
        InputError: pyarrow is not installed, or the file is no Parquet file.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InputError(
            f'Reading {path} needs pyarrow, which is not installed: pip install "agentmem[datasets]".'
        ) from None
    number = 0
    try:
        for batch in ParquetFile(file).iter_batches(batch_size=BATCH):
            for record in batch.to_pylist():
                number += 1
                yield Place(path, "row", number), plain(record)
    except (ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read as Parquet ({reason:.200}); write it again.") from None


def plain(value: Any) -> Any:
    """The value as JSON can hold it: dates and decimals as text, bytes by their number, no number as nothing.

    Example:
        >>> import datetime
        >>> plain({"day": datetime.date(2025, 1, 2), "image": b"1234", "score": float("nan")})
        {'day': '2025-01-02', 'image': '(4 bytes)', 'score': None}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {str(key): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case bytes():
            return f"({len(value):,} bytes)"
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else str(value)
