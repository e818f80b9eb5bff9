"""Training: what only a whole run has, from the config's fields to the folder on disk.

`loop.train` trains or resumes a run, and `agent.load` reads what it learned. `state.RunState` is everything that
changes, and so what a checkpoint holds; `iteration` is the program that changes it; the rest is what the host does
around it.
"""
