"""What a robot is: links, joints, bases, the module partition, building and checking, random trees."""
