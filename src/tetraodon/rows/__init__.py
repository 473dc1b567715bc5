"""Row releases: every record goes out, some of its values replaced through channels, under one charge."""
