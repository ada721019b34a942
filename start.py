#!/usr/bin/env python3
"""One command on a fresh machine: `python3 start.py [run|test|check|lock|reset|install|manage|python]`.

Standard library only, and any Python from 3.8 on may run this file: it finds one of 3.12 or newer for the product.
pip fetches uv, uv makes .venv from the hash-locked requirements, a stamp skips all of it next time; where uv does not
work, venv and pip do the same more slowly.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import fcntl
import glob
import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, Mapping

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".counterseal.json"
TOOLS = HERE / ".state"
UV_VERSION = "0.13.9"
MINORS = (12, 13, 14)  # in order of preference: the first is what we test with
LOCKS = {"run": "requirements.txt", "dev": "requirements-dev.txt"}
MODULES = {"run": "config.supervisor", "reset": "config.reset"}
CHECKS = (
    ("lint", ["-m", "ruff", "check", "."]),
    ("format", ["-m", "ruff", "format", "--check", "."]),
    (
        "types",
        ["-m", "mypy", "--no-error-summary", "config", "approvals", "agents", "middleware", "start.py"],
    ),
    (
        "import rules",
        ["-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"],
    ),
    ("Django", ["manage.py", "check", "--fail-level", "WARNING"]),
    ("migrations", ["-W", "ignore", "manage.py", "makemigrations", "--check", "--dry-run"]),
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Problem(Exception):
    """What stops us, in one sentence that a person can act on."""


# --- Saying what happens ----------------------------------------------------------------------------------------------
def say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


@contextlib.contextmanager
def phase(what: str) -> Iterator[None]:
    """One line for each slow step: what it is, and how long it took."""
    began = time.monotonic()
    say("counterseal: " + what + " ...", end="")
    try:
        yield
    except BaseException:
        say(" failed")
        raise
    say(" %.1f s" % (time.monotonic() - began))


def explain(error: OSError) -> str:
    """An operating system error in words, with what to do about it."""
    place = error.filename or HERE
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", -1)):
        return "The disk that holds %s is full: free about 1 GB and start again." % place
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "Cannot write to %s (%s): put the project into a folder that is yours." % (
            place,
            error.strerror,
        )
    return "%s: %s" % (place, error.strerror)


def last_lines(output: str, count: int = 4) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return "\n".join("    " + line for line in lines[-count:])


# --- Finding a Python -------------------------------------------------------------------------------------------------
def home_folders(environ: Mapping[str, str]) -> list[str]:
    """The home folder that is set and the one that the system knows: HOME may be empty."""
    homes = [environ.get("HOME", "")]
    with contextlib.suppress(KeyError):
        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    return [home for home in dict.fromkeys(homes) if home]


def pyenv_roots(environ: Mapping[str, str]) -> list[str]:
    """Where pyenv may keep its Pythons; its shims on PATH tell more than HOME."""
    roots = [environ.get("PYENV_ROOT", "")]
    for folder in environ.get("PATH", "").split(os.pathsep):
        if os.path.basename(folder) in ("shims", "bin") and "pyenv" in folder:
            roots.append(os.path.dirname(folder))
    roots += [os.path.join(home, ".pyenv") for home in home_folders(environ)]
    return [root for root in dict.fromkeys(roots) if root and os.path.isdir(os.path.join(root, "versions"))]


def candidate_pythons(environ: Mapping[str, str]) -> list[str]:
    """Interpreters worth trying, best first. Some will not run: pyenv puts a shim on PATH for each version."""
    found = [environ.get("COUNTERSEAL_PYTHON", "")]
    if sys.version_info[:2] in [(3, minor) for minor in MINORS]:
        found.append(getattr(sys, "_base_executable", sys.executable))
    folders = environ.get("PATH", "").split(os.pathsep) + ["/usr/local/bin", "/opt/homebrew/bin", "/usr/bin"]
    for minor in MINORS:
        found += [os.path.join(folder, "python3.%d" % minor) for folder in folders if folder]
        for root in pyenv_roots(environ):
            found += newest_first(
                glob.glob(os.path.join(root, "versions", "3.%d.*" % minor, "bin", "python3"))
            )
        for home in home_folders(environ):
            managed = os.path.join(home, ".local/share/uv/python", "cpython-3.%d.*" % minor, "bin", "python3")
            found += newest_first(glob.glob(managed))
    return [
        path for path in dict.fromkeys(found) if path and os.access(path, os.X_OK) and os.path.isfile(path)
    ]


def newest_first(paths: list[str]) -> list[str]:
    return sorted(paths, key=lambda path: [int(part) for part in re.findall(r"\d+", path)], reverse=True)


def version_of(python: str) -> tuple[int, int] | None:
    """The version of an interpreter that runs and is whole; None for a broken one."""
    probe = "import ssl, ctypes, sys; print(*sys.version_info[:2])"
    try:
        run = subprocess.run([python, "-I", "-c", probe], capture_output=True, text=True, timeout=30)
        major, minor = run.stdout.split()
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return int(major), int(minor)


def find_python(environ: Mapping[str, str]) -> str | None:
    fitting = [(3, minor) for minor in MINORS]
    return next((path for path in candidate_pythons(environ) if version_of(path) in fitting), None)


# --- pip's settings, for uv -------------------------------------------------------------------------------------------
def parse_pip_config(output: str) -> dict[str, str]:
    """The settings in `pip config list`; those of the environment win over those of `install`, then `global`."""
    ranked = {"global": 0, "install": 1, ":env:": 2}
    best: dict[str, tuple[int, str]] = {}
    for line in output.splitlines():
        name, _, raw = line.partition("=")
        section, _, key = name.rpartition(".")
        if section not in ranked or ranked[section] < best.get(key, (-1, ""))[0]:
            continue
        with contextlib.suppress(ValueError, SyntaxError):
            best[key] = (ranked[section], str(ast.literal_eval(raw)))
    return {key: value for key, (_, value) in best.items()}


def pip_settings(python: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What pip was told on this machine (uv does not read pip's files)."""
    try:
        run = subprocess.run(
            [python, "-m", "pip", "config", "list"], capture_output=True, text=True, timeout=60
        )
        settings = parse_pip_config(run.stdout)
    except (OSError, subprocess.TimeoutExpired):
        settings = {}
    for name, value in environ.items():
        if name.startswith("PIP_") and value:
            settings[name[4:].lower().replace("_", "-")] = value
    return settings


def uv_environment(settings: dict[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for uv that says the same as pip's settings; what is set for uv already stays."""
    given: dict[str, str] = {"UV_SYSTEM_CERTS": "1", "UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1"}
    if settings.get("index-url"):
        given["UV_DEFAULT_INDEX"] = settings["index-url"]
    if settings.get("extra-index-url"):
        given["UV_INDEX"] = " ".join(settings["extra-index-url"].split())
        given["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip does; the hashes decide what is accepted
    if settings.get("find-links"):
        given["UV_FIND_LINKS"] = ",".join(settings["find-links"].split())
    if settings.get("trusted-host"):
        given["UV_INSECURE_HOST"] = " ".join(settings["trusted-host"].split())
    if settings.get("cert"):
        given["SSL_CERT_FILE"] = settings["cert"]
    if settings.get("default-timeout") or settings.get("timeout"):
        given["UV_HTTP_TIMEOUT"] = settings.get("timeout") or settings["default-timeout"]
    if settings.get("proxy"):
        given.update(HTTPS_PROXY=settings["proxy"], HTTP_PROXY=settings["proxy"])
    home = environ.get("HOME", "")
    if not (environ.get("XDG_CACHE_HOME") or (home and os.access(home, os.W_OK))):
        given["UV_CACHE_DIR"] = str(TOOLS / "uv-cache")
    return dict(given, **environ)


# --- The stamp --------------------------------------------------------------------------------------------------------
def digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def read_stamp() -> dict[str, str]:
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def wanted_stamp(kind: str) -> dict[str, str]:
    """`dev` holds everything of `run`, so it satisfies both."""
    kinds = ["run", "dev"] if kind == "dev" else ["run"]
    return {name: digest(HERE / LOCKS[name]) for name in kinds}


def is_installed(kind: str) -> bool:
    stamp = read_stamp()
    return os.access(str(VENV_PYTHON), os.X_OK) and all(
        stamp.get(key) == value for key, value in wanted_stamp(kind).items()
    )


# --- Installing -------------------------------------------------------------------------------------------------------
def install(kind: str) -> None:
    """Make .venv hold the locked packages; two starts at the same time take turns."""
    if is_installed(kind):
        return
    if "dev" in read_stamp():
        kind = "dev"  # once there, the test packages stay
    TOOLS.mkdir(exist_ok=True)
    with open(str(TOOLS / "install.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_installed(kind):
            install_now(kind)


def install_now(kind: str) -> None:
    if sys.platform == "win32":
        raise Problem("Counterseal runs on Linux and macOS; on Windows use WSL or the container files.")
    python = find_python(os.environ)
    settings = pip_settings(python or sys.executable, os.environ)
    env = uv_environment(settings, os.environ)
    uv = find_uv([python, sys.executable])
    if python is None:
        python = python_from_uv(uv, env)
    say("counterseal: using %s" % python)
    lock = HERE / LOCKS[kind]
    with phase(
        "installing %d packages into .venv" % len(re.findall(r"^[a-z0-9].*==", lock.read_text(), re.M))
    ):
        output = uv_sync(uv, python, lock, env) if uv else "uv is not available"
    if output:
        say(last_lines(output))
        say("counterseal: uv did not work here; venv and pip do the same in a few minutes")
        pip_sync(python, lock)
    STAMP.write_text(json.dumps(wanted_stamp(kind)))


def find_uv(pythons: list[str | None]) -> str | None:
    """Our own uv, fetched by the first pip that works, else the one on PATH."""
    target = TOOLS / "uv"
    own = target / "bin" / "uv"
    if own.exists() and (target / ("uv-%s.dist-info" % UV_VERSION)).exists():
        return str(own)
    with phase("fetching the installer (uv)"):
        for python in dict.fromkeys(python for python in pythons if python):
            shutil.rmtree(str(target), ignore_errors=True)
            # Refused together with --target, or outside a venv, if somebody's pip settings say so.
            env = dict(
                os.environ, PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0", PIP_DISABLE_PIP_VERSION_CHECK="1"
            )
            command = [python, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:"]
            command += ["--target", str(target), "uv==" + UV_VERSION]
            output = run_quietly(command, env)
            if own.exists():
                return str(own)
            if "No space left on device" in output:
                raise OSError(errno.ENOSPC, "No space left on device", str(target))
    return shutil.which("uv")


def python_from_uv(uv: str | None, env: dict[str, str]) -> str:
    """The last resort: what uv finds elsewhere, or its own download."""
    wanted = ">=3.12,<3.15"
    if uv:
        with phase("no Python 3.12 or newer found, asking uv for one"):
            allowed = dict(env, UV_PYTHON_DOWNLOADS="automatic")
            run_quietly([uv, "python", "install", "3.12"], allowed)
            run = subprocess.run([uv, "python", "find", wanted], env=allowed, capture_output=True, text=True)
        if run.returncode == 0 and run.stdout.strip():
            return run.stdout.strip()
    raise Problem(
        "Counterseal needs Python 3.12 or newer, and this machine seems to have only %d.%d: install one "
        "(python.org, your package manager, `uv python install 3.12` or `pyenv install 3.12`), or name it with "
        "COUNTERSEAL_PYTHON=/path/to/python3.12." % sys.version_info[:2]
    )


def uv_sync(uv: str, python: str, lock: Path, env: dict[str, str]) -> str:
    """Bring .venv to the locked state; empty, or what uv said when it failed. A whole .venv is kept and updated."""
    sync = [uv, "pip", "sync", "-q", "--require-hashes", "--python", str(VENV_PYTHON), str(lock)]
    if venv_is_usable() and not run_quietly(sync, env):
        return ""
    return run_quietly([uv, "venv", "-q", "--clear", "--python", python, str(VENV)], env) or run_quietly(
        sync, env
    )


def venv_is_usable() -> bool:
    return os.access(str(VENV_PYTHON), os.X_OK) and version_of(str(VENV_PYTHON)) in [
        (3, minor) for minor in MINORS
    ]


def pip_sync(python: str, lock: Path) -> None:
    with phase("making .venv"):
        shutil.rmtree(str(VENV), ignore_errors=True)
        output = run_quietly([python, "-m", "venv", str(VENV)], os.environ)
    if not output:
        with phase("installing with pip"):
            command = [str(VENV_PYTHON), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(lock)]
            output = run_quietly(command, os.environ)
    if output:
        say(last_lines(output))
        raise Problem(
            "Installing the packages failed; the lines above say why (is there a way to the package index?)."
        )


def run_quietly(command: list[str], env: Mapping[str, str]) -> str:
    """Run a tool; empty if it worked, else its output. A full disk is always the reason, whatever the tool calls it."""
    run = subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output = run.stdout.decode(errors="replace")
    if run.returncode and ("No space left on device" in output or "os error 28" in output):
        raise OSError(errno.ENOSPC, "No space left on device", str(HERE))
    return (output or "status %d" % run.returncode) if run.returncode else ""


# --- The browser for the tests ------------------------------------------------------------------------------------------
def browser_works() -> bool:
    probe = [str(VENV_PYTHON), "-c", "from tests.services import chromium_path; chromium_path()"]
    return (
        subprocess.run(probe, cwd=str(HERE), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        == 0
    )


def ensure_browser() -> None:
    """Install Chromium where it is missing. If that fails we go on: the browser tests then fail and say what to do."""
    if browser_works():
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        with phase("installing Chromium for the browser tests (apt-get)"):
            packages = ["chromium", "fonts-noto-cjk"]
            run_quietly(["apt-get", "-qq", "update"], env)
            run_quietly(["apt-get", "-qq", "install", "-y", "--no-install-recommends"] + packages, env)
        if browser_works():
            return
    with phase("installing Chromium for the browser tests (playwright)"):
        run_quietly([str(VENV_PYTHON), "-m", "playwright", "install", "chromium"], os.environ)
    if not browser_works():
        say(
            "counterseal: no Chromium could be installed: the browser tests will fail; install it and set CHROMIUM"
        )


# --- Commands -----------------------------------------------------------------------------------------------------------
def check() -> int:
    """Every static check, also after a failed one; the status says whether all passed."""
    failed = []
    for name, arguments in CHECKS:
        say("== " + name)
        if subprocess.run([str(VENV_PYTHON)] + arguments, cwd=str(HERE)).returncode:
            failed.append(name)
    say("all checks passed" if not failed else "failed: " + ", ".join(failed))
    return 1 if failed else 0


def lock() -> int:
    """Write both lock files; the second follows the first."""
    env = uv_environment(pip_settings(str(VENV_PYTHON), os.environ), os.environ)
    uv = find_uv([find_python(os.environ), sys.executable])
    if not uv:
        raise Problem("Locking needs uv, and no pip here could fetch it.")
    env["UV_CUSTOM_COMPILE_COMMAND"] = "make lock"
    for name in LOCKS.values():
        source = name.replace(".txt", ".in")
        command = [uv, "pip", "compile", "-q", "--universal", "--python-version", "3.12", "--generate-hashes"]
        # No index address in the file: it would be this machine's.
        status = subprocess.run(command + ["--no-emit-index-url", source, "-o", name], cwd=str(HERE), env=env)
        if status.returncode:
            return status.returncode
    return 0


def become(arguments: list[str]) -> None:
    """Replace ourselves, so that signals reach the program and its status is ours."""
    os.chdir(str(HERE))
    sys.stdout.flush()
    # Keep compiled modules, whatever the machine's own setting says: without them every process starts 2 s later.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(VENV / "pycache"))
    os.execv(str(VENV_PYTHON), [str(VENV_PYTHON)] + arguments)


def main(arguments: list[str]) -> int:
    command, rest = (arguments[0], arguments[1:]) if arguments else ("run", [])
    if os.environ.get("COUNTERSEAL_STATE_DIR"):
        os.environ["COUNTERSEAL_STATE_DIR"] = os.path.abspath(
            os.path.expanduser(os.environ["COUNTERSEAL_STATE_DIR"])
        )
    known = ("run", "test", "check", "lock", "reset", "install", "manage", "python")
    if command not in known:
        raise Problem("start.py knows %s; not %r." % (", ".join(known), command))
    if command == "lock":
        return lock()
    if command == "install":  # from scratch: it is what a damaged .venv needs
        with contextlib.suppress(FileNotFoundError):
            STAMP.unlink()
        shutil.rmtree(str(VENV), ignore_errors=True)
    install("dev" if command in ("test", "check") else "run")
    if command == "install":
        return 0
    if command == "check":
        return check()
    if command == "test":
        ensure_browser()
        become(["-m", "pytest"] + rest)
    if command in MODULES:
        become(["-m", MODULES[command]] + rest)
    become(["manage.py"] + rest if command == "manage" else rest)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Problem as problem:
        sys.exit("Counterseal cannot start: %s" % problem)
    except OSError as problem:
        sys.exit("Counterseal cannot start: %s" % explain(problem))
    except KeyboardInterrupt:
        sys.exit(130)
