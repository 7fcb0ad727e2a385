"""The pytest plugin of Lowwater."""
