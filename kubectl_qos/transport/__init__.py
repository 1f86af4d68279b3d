"""The way to a cluster: kubeconfig, authentication, TLS, proxies, one connection.

Not here: what is requested, and what responses mean (cluster/).
"""
