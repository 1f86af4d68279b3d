"""Rules that check the requests, limits and QoS class of manifests and pods."""
