"""Any clip on any character: match links, transfer the motion, keep feet where they stand."""
