"""The built-in characters, each in its own file, written in Python and made when asked for."""
