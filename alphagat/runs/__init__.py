"""Runs on disk: the run folder, its checkpoints with their manifests, and its metrics.

Files are replaced atomically (`atomic_files`). This package does not know the contents of a checkpoint: callers pass
the shapes that they expect.
"""
