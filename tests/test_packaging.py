"""The wheel holds what it needs, and the prompts are found wherever the package lies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEMPLATES = sorted(file.name for file in (ROOT / "prompts").glob("*.md"))
SHOW = (
    "import agentmem, agentmem.prompts as p; print(agentmem.__file__); print(p.load('prior').path); "
    "print(p.render('prior', lessons=[{'id': 'e-1', 'text': 'Check units.', 'when': '', 'when_not': ''}]))"
)


def run(command: Sequence[str | Path], cwd: Path) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "AGENTMEM_PROMPTS")
    }
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def show(package_parent: Path, cwd: Path) -> list[str]:
    """What `SHOW` prints in an isolated interpreter that finds agentmem in `package_parent` alone."""
    code = f"import sys; sys.path.insert(0, {str(package_parent)!r}); {SHOW}"
    return run([sys.executable, "-I", "-c", code], cwd).splitlines()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT], folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--no-index", "--disable-pip-version-check"]
    run([*pip, "--target", target, wheel], target)
    return target


def test_the_wheel_holds_the_prompts_the_licence_and_the_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert sorted(name for name in names if name.startswith("agentmem/_prompts/")) == [
        f"agentmem/_prompts/{name}" for name in TEMPLATES
    ]
    assert TEMPLATES
    assert {"agentmem/sandbox/warden.py", "agentmem/sandbox/etc/passwd", "agentmem/sandbox/etc/group"} <= set(
        names
    )
    assert "agentmem/py.typed" in names
    # hatchling leaves out what .gitignore names, and a pattern such as `runs/` would name a room of the package.
    assert {str(file.relative_to(ROOT)) for file in (ROOT / "agentmem").rglob("*.py")} <= set(names)
    assert any(name.endswith("/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"agentmem"}, "no tests, no benchmarks"


def test_an_installed_package_renders_its_own_prompts(installed: Path, tmp_path: Path) -> None:
    where, template, *text = show(installed, tmp_path)
    assert Path(where).parent == installed / "agentmem"
    assert Path(template) == installed / "agentmem" / "_prompts" / "prior.md"
    assert text[-1] == "[e-1] Check units."


def test_a_checkout_renders_its_prompts_folder(tmp_path: Path) -> None:
    where, template, *_ = show(ROOT, tmp_path)
    assert Path(where).parent == ROOT / "agentmem"
    assert Path(template) == ROOT / "prompts" / "prior.md"


def test_a_prompts_folder_in_site_packages_is_somebody_elses(installed: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(installed / "agentmem", site / "agentmem")
    shutil.copytree(ROOT / "prompts", site / "prompts")
    (site / "prompts" / "prior.md").write_text("not ours")
    assert show(site, tmp_path)[1] == str(site / "agentmem" / "_prompts" / "prior.md")
    shutil.rmtree(site / "agentmem" / "_prompts")
    with pytest.raises(AssertionError, match="The prompt templates are missing beside"):
        show(site, tmp_path)


def test_an_editable_install_finds_the_checkout(tmp_path: Path) -> None:
    # `pip install -e` unpacks a wheel that holds a path file; made without pip, it leaves this environment alone.
    code = f"from hatchling.build import build_editable; print(build_editable({str(tmp_path)!r}))"
    built = tmp_path / run([sys.executable, "-c", code], ROOT).splitlines()[-1]
    site = tmp_path / "site"
    zipfile.ZipFile(built).extractall(site)
    (path_file,) = site.glob("*.pth")
    assert path_file.read_text().strip() == str(ROOT)
    assert not (site / "agentmem").exists()
    code = f"import site; site.addsitedir({str(site)!r}); {SHOW}"
    where, template, *_ = run([sys.executable, "-I", "-c", code], tmp_path).splitlines()
    assert Path(where).parent == ROOT / "agentmem"
    assert Path(template) == ROOT / "prompts" / "prior.md"
