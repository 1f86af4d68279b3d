"""What killed a container, how sure that is, and why it was chosen."""
