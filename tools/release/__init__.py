"""What a release is made of: wheel, chart, Debian package, image, lists of parts, checksums."""
