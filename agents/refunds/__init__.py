"""The refund agent: what a support team does with orders, policies and refunds."""
