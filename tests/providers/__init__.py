"""Real provider clients against loopback servers, through the whole product."""

import pytest

pytest.register_assert_rewrite("tests.providers.story")
