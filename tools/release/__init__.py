"""What a release is made of: wheel, sdist, chart, Debian package, image, lists of parts, checksums."""
