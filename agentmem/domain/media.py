"""Pictures and sounds as parts of a message, for models that take them."""

from __future__ import annotations

import base64
from typing import Literal

from agentmem.domain.value import Value

MediaKind = Literal["image", "audio"]
FORMATS: dict[MediaKind, frozenset[str]] = {
    "image": frozenset({"png", "jpeg", "gif", "webp"}),
    "audio": frozenset({"wav", "mp3"}),
}
"""What the chat-completions format carries."""
MOST_BYTES = 5_000_000
"""Of one picture or sound: several providers refuse more."""
IMAGE_TOKENS = 2_000
"""What one picture is charged at most; providers scale larger ones down."""
AUDIO_BYTES_A_TOKEN = 100
"""Speech is charged 10 to 32 tokens a second, and compressed speech has 4,000 bytes a second or more."""


class Media(Value):
    """A picture or a sound.

    Example:
        >>> Media.of(b"...", "image", "png", name="chart.png").data
        'Li4u'
    """

    kind: MediaKind
    format: str
    """One of `FORMATS`."""
    data: str
    """The file's bytes in base64."""
    name: str = ""
    """What the file is called."""

    @classmethod
    def of(cls, content: bytes, kind: MediaKind, format: str, *, name: str = "") -> Media:
        """From a file's bytes."""
        return cls(kind=kind, format=format, data=base64.b64encode(content).decode("ascii"), name=name)

    @property
    def tokens(self) -> int:
        """At most how many tokens it is charged."""
        return IMAGE_TOKENS if self.kind == "image" else len(self.data) * 3 // 4 // AUDIO_BYTES_A_TOKEN + 100
