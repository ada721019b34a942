"""Who gets in, and who may do what."""
