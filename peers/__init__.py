"""Other people's brokers and clients that the tests and the bench compare with."""
