"""Files: bounded reads, atomic writes, archives, YAML and XML with line numbers."""
