"""The installer, the own servers and their supervisor."""
