"""What a watermark drops of a backlog that is uneven in time, by how its micro-batches are cut."""
