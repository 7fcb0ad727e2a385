"""How rows get from a call to their brokers: once each, in order, and with word of what became of them."""
