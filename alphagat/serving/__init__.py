"""Trained networks for people and programs: web pages, live views of runs, GTP, UCI and JSON lines."""
