"""The application: the command line, reports and studies, which use all packages."""
