"""Reports: what people see of results."""
