"""Why mail waits."""
