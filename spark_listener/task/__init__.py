"""What runs in a job's tasks: counts throttle times there and carries them home. Works on Python 3.8."""
