"""The screens, one a file, each beside its stylesheet."""
