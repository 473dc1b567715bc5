"""The experiments of the Blowfish papers beside ours, one command a figure."""
