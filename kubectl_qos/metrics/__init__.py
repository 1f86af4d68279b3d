"""Find and query stores of metrics that speak Prometheus' HTTP API, and read their series."""
