"""The words: values to rows, cells and sentences, shared by the command line and the terminal UI.

No IO, no clock, and no textual or rich: colours and widgets belong to the shells.
"""
