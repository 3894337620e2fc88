"""Pictures of the architecture of a robot: its modules with their links, joints and feet."""
