"""Training: everything that concerns a whole run, from its config to its folder on disk.

`loop.train` trains or resumes a run, and `agent.load` reads its network. `state.RunState` is everything that changes,
and so the content of a checkpoint; `iteration` is the program that changes it; the other modules run on the host.
"""
