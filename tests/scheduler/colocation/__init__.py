"""ClusterColocationProfiles."""
