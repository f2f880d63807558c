"""Studies as people see them: progress, tables in a terminal, a page, and figures."""
