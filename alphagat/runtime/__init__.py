"""Runtime: devices and their mesh, several processes, signals, and the settings of the compiler."""
