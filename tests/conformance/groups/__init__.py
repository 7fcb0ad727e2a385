"""Members of consumer groups in processes of their own: what the group suites put on stage."""
