"""The one Django app: rows, people, pages, API, tasks."""
