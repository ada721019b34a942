"""A form for the arguments of a tool call, made from its JSON Schema and read back as a typed patch.

    tree = fields.build(schema, proposed, locked=frozenset({"/order_id"}))
    html.render(tree)                                       # the form's fields
    edit = patch.apply_edit(schema, proposed, posted)  # edit.args, edit.changes, edit.errors

The rule everything else follows from: *an edit is a patch on the proposed JSON*. For each leaf the text that comes
back is compared with the text that was shown; equal means untouched, and an untouched value keeps its exact JSON
(640.0 stays 640.0, "1280.00" stays a string, unknown keys and key order survive).

Everything but html.py and diff.py is standard library only.
"""
