"""Micro-batches that end at one moment in all partitions. Everything decides by what `logs.Logs` answers."""
