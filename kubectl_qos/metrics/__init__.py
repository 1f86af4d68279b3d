"""Stores of metrics that speak Prometheus' HTTP API: how one is found and asked, and what its series mean."""
