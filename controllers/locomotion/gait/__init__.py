"""Contact schedules of gaits, landing places and paths of swinging feet."""
