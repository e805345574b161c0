"""Tables in files, read as they are and written back with nothing changed but what was repaired."""
