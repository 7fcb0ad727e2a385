"""Start positions: the grammar in which people say where to read, and the plan that turns their wishes into offsets."""
