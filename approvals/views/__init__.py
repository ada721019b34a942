"""Pages: read the form, call a service, render."""
