"""A form for the options of a middleware, or for an agent's own fields, made from a pydantic model's JSON Schema.

    tree = tree.build(schema, value)                     # fields with what they show
    read = reading.read(tree, posted)                    # read.value, read.errors
    value = reading.act(tree, read.value, "add", "/edits")   # a list or a map grows, a choice switches

Unlike an edit of a call (`argform`) the whole shape may change: lists, named parts and alternatives. What is not touched
stays as it is stored, and what stands at its default stays unsaid.
"""
