"""Tables of operation counts: of robots, by stage and module, and over numbers of modules and legs."""
