"""Transactions: a pure state machine per transactional id, logged in `__transaction_state`."""
