"""Motion files, one module per format."""
