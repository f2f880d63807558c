"""Studies: the paper's tables, measured again. A study is data, its runs leave records, tables come from records."""
