"""JSON API, version 1."""
