"""Two more ways to pay money back, for tests that kill processes (`COUNTERSEAL_AGENTS=agents.refunds,tests.tills`).

`pay_back`: the provider takes no key, but can be asked what it did for a reference. `pay_blind`: neither.
"""
