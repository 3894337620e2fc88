"""Robot models: links, joints, bases, the partition into modules, their definition and checks, random trees."""
