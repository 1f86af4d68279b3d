"""Rules for manifests before they run: what a pod's requests, limits and class will cost it."""
