"""A small shop with its own store: stands in for the commerce and payment system of a real team.

It is a separate process that knows nothing of the rest of this repository, uses the standard library only, and can be
told to misbehave.
"""
