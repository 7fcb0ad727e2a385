"""Bytes of records as typed columns: JSON, Avro and Protobuf, plain or behind Confluent's framing.

`spec` says what is wanted and is pure; `decoder.Decoder.of(spec)` does it. A format turns its schema into a `Shape`
(what Spark sees) and a table of steps (what a kernel does for each row); the kernels write into `Slots`, from which
Arrow arrays are made. A row that cannot be decoded is null, and its reason is told; the others are not disturbed.
"""
