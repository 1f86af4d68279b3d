"""What Kubernetes objects say: pure values, decoding and API arithmetic.

No IO, no clock, no environment, and no prediction of what a node does with an object (that is `qos/`).
"""
