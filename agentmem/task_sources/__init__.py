"""Where tasks come from: files, tables and the Hub, row by row, and which column is what."""
