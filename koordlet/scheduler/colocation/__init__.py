"""ClusterColocationProfiles: what they make of new pods."""
