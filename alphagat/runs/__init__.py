"""Runs on disk: the run folder, its checkpoints with their manifests, and its metrics.

Every file is replaced atomically (`atomic_files`). Nothing here knows what a checkpoint contains: callers pass the
shapes that they expect.
"""
