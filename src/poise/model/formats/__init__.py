"""Files that characters are read from and written to, one format in each module."""
