"""Options of every middleware, as pydantic models: what may stand beside "use" in an agent's spec. Light."""

from middleware.options.base import Options
from middleware.options.people import Gate, HumanInTheLoopOptions

__all__ = ["Gate", "HumanInTheLoopOptions", "Options"]
