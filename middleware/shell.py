"""A shell whose session is shared by all commands of one drive.

LangChain keeps the session in untracked state: after a pause every command would get a shell of its own, with the
start-up commands run each time and the shutdown commands never. A drive builds its middleware once, so the session
lives there. It cannot live longer: the next drive may be another process.
"""

from __future__ import annotations

import threading
from typing import Any

from langchain.agents.middleware import ShellToolMiddleware
from langchain.agents.middleware.shell_tool import _SessionResources
from langgraph.runtime import Runtime

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class OneSession(ShellToolMiddleware[Any, Any]):
    """One session for each instance, made by the first command and closed at the end of the run, or with the instance."""

    def __init__(self, *args: Any, env: dict[str, str] | None = None, **options: Any) -> None:
        super().__init__(*args, env={"PATH": PATH} | (env or {}), **options)
        self._one_lock = threading.Lock()
        self._one: _SessionResources | None = None

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        """No session yet: a run that never uses the shell should not pay for one."""

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        return None

    def _get_or_create_resources(self, state: Any) -> _SessionResources:
        with self._one_lock:
            if self._one is None:
                self._one = self._create_resources()
            return self._one

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        with self._one_lock:
            resources, self._one = self._one, None
        if resources is None:
            return
        try:
            self._run_shutdown_commands(resources.session)
        finally:
            resources.finalizer()

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        self.after_agent(state, runtime)


class CaseShell(OneSession):
    """The shell tool."""
