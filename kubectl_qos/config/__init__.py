"""A person's settings, and what is kept between runs. Not here: what any setting does."""
