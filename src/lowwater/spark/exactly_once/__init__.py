"""The sink that writes each row once: transactions of tasks, and the one record that commits them all."""
