@rem Completes `kubectl qos`: a file of the name kubectl_complete-qos.cmd in a folder of PATH.
@kubectl-qos __complete %*
