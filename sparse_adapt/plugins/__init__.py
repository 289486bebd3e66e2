"""What somebody may leave out: each folder is a plug-in, found by its entry point, that the core never imports."""
