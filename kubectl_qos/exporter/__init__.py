"""Predictions as metrics for Prometheus: `kubectl qos exporter`."""
