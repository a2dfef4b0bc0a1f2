"""The `read_file` tool: documents, tables, archives, code and text, as text that fits into a prompt."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from pathlib import Path

from agentmem.errors import InputError
from agentmem.sandbox.thread import in_thread
from agentmem.tools import archive
from agentmem.tools.convert import as_text, require_converter
from agentmem.tools.excerpt import excerpt
from agentmem.tools.files import FileContent, read_content
from agentmem.tools.pictures import media_of
from agentmem.tools.tool import Tool, ToolContext, ToolOutput

REMEMBERED = 16
"""Converted texts that are kept, so that reading on does not convert again."""


def file_reader(*folders: str | os.PathLike[str], name: str = "read_file") -> Tool:
    """A tool that reads the files of the attempt's folder, the task's own, and those of `folders`.

    Args:
        folders: other folders whose files may be read, such as one that is searched.
        name: the tool's name.

    Raises:
        InputError: a folder does not exist, or markitdown is not installed.

    Example:
        >>> file_reader().name
        'read_file'
    """
    require_converter()
    for folder in folders:
        if not Path(folder).is_dir():
            raise InputError(f"read_file: there is no folder {str(folder)!r}; name one that exists.")
    return Tool(_Reader([Path(folder).absolute() for folder in folders]), name=name, untrusted=True)


class _Reader:
    """Read a file: PDF, Word, Excel, PowerPoint, EPUB, HTML, CSV, JSON, XML, zip archives, code, any text.

    A long text is shown in stretches, each with the line to read on from. A file in an archive is read as
    `archive.zip/path/in/it`.

    Args:
        path: the file, relative to the working folder.
        start: the line to read from, for reading on.
        part: only some pages or slides, such as `3-5`, or some cells of a workbook, such as `B7` or `Sheet1!A1:C20`.
        context: where it runs; the model is not told.
    """

    def __init__(self, folders: list[Path]) -> None:
        self.folders = folders
        self.texts: OrderedDict[str, str] = OrderedDict()

    async def __call__(self, path: str, context: ToolContext, start: int = 1, part: str = "") -> ToolOutput:
        file = await in_thread(lambda: self._file(path, context))
        if (media := media_of(file, context.accepts)) is not None:
            said = f"{path!r} is {'an image' if media.kind == 'image' else 'a recording'}; it follows."
            return ToolOutput(said, source=f"file:{file.name}", media=(media,))
        key = hashlib.sha256(f"{file.name}\0{part}\0".encode("utf-8", "replace") + file.content).hexdigest()
        text = self.texts.get(key)
        if text is None:
            text = await as_text(file, part=part, seconds=0.9 * context.seconds)
            self.texts[key] = text
            while len(self.texts) > REMEMBERED:
                self.texts.popitem(last=False)
        return ToolOutput(excerpt(text, start=start, what=path), source=f"file:{file.name}")

    def _file(self, path: str, context: ToolContext) -> FileContent:
        file, rest = read_content(path, context, folders=self.folders)
        if not rest:
            return file
        return archive.member(FileContent(file.name.removesuffix(f"/{rest}"), file.content), rest)
