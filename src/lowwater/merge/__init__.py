"""Releasing records in timestamp order across partitions: what may go, who has to wait, who goes on."""
