"""kcat and `lowwater cat`, given the same command lines."""
