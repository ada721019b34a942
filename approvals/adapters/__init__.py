"""Django implementations of the ports of `middleware` and `agents`."""
