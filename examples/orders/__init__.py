"""A shop's orders, payments and shipments: a sample, a pipeline that joins them, and a check that recomputes it."""
