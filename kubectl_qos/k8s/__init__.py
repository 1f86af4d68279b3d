"""Kubernetes objects as pure values: no IO, no clock, no environment. Predictions are in `qos/`."""
