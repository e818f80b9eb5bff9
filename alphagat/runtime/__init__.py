"""Runtime: devices and the mesh, multiple processes, signals, and compiler settings."""
