"""Robot files: reading and writing of URDF and MJCF, audits, and the detection of feet."""
