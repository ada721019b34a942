"""What looks for personal data and unwanted text."""

from __future__ import annotations

from middleware.entry import Entry, key_of, named
from middleware.options import privacy as o

ENTRIES = (
    Entry(
        name="pii",
        label="Personal data",
        family="privacy",
        summary="Finds personal data in messages and blocks, redacts, masks or hashes it.",
        help="One instance for each kind: e-mail, credit card, IP and MAC address, URL, or an own kind by a regular "
        "expression or a named detector. It looks at messages of people, answers of the model or results of tools. Put "
        "it in front of summarization.",
        options=o.PiiOptions,
        hooks=("before_model", "after_model"),
        factory="middleware.factories.privacy:pii",
        title=lambda options: f"PIIMiddleware[{options.pii_type}]",
        notes=(
            "Arguments of tool calls and older checkpoints keep the original text.",
            "Streamed text is not redacted: with apply_to_output it is shown only when the message is complete.",
        ),
    ),
    Entry(
        name="openai_moderation",
        label="OpenAI moderation",
        family="providers",
        summary="Has messages checked by OpenAI's moderation service.",
        help="Checks what people write, what the model answers or what tools return, and ends the run, fails it or "
        "replaces the text when something is flagged. It works with every model, and sends the text to OpenAI.",
        options=o.OpenaiModerationOptions,
        hooks=("before_model", "after_model"),
        factory="middleware.factories.privacy:openai_moderation",
        title=named("OpenAIModerationMiddleware"),
        package="langchain_openai",
        install="langchain-openai",
        missing=lambda options: key_of(options.api_key_env),
        notes=("The newest message of a person is checked again before every model call of the run.",),
    ),
)
