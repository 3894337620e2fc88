"""Programs that use the toolkit; `examples.studies` has a command line."""
