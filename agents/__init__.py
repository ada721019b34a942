"""LangGraph runtime, agent specs and tools. Knows no Django."""
