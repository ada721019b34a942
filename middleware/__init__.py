"""LangChain agent middleware: the prebuilt catalogue and our own. Knows no Django."""
