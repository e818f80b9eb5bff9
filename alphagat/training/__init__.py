"""Training: the loop, its compiled programs, and the host code around them.

`loop.train` trains or resumes a run. `state.RunState` holds everything that changes and is what a checkpoint stores;
`iteration` is the program that advances it.
"""
