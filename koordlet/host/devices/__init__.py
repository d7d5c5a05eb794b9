"""Devices that work shares: block devices and network links, as the kernel's tables have them."""
