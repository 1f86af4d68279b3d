"""How a cluster is reached and who we are there: kubeconfig, credentials, TLS, proxies, one connection.

Not here: what is asked of it, and what its answers mean.
"""
