"""Analysis of positions by trained networks, served as a web page and over GTP, UCI and JSON lines."""
