"""State changes: each function owns its guard, row, audit entry and event."""
