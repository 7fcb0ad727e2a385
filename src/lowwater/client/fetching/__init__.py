"""Reading partitions from the brokers that lead them: what arrives is given on as it was stored."""
