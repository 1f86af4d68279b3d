"""What Kubernetes objects say, as pure values: no IO, no clock, no environment, no predictions (`qos/`)."""
