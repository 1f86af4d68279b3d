"""The parts that screens are made of, one a file."""
