"""Programs that run one member of a group with one client library: commands in, events out, a JSON line each."""
