"""The screens, one per file, each next to its stylesheet."""
