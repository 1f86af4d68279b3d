"""The edge towards clusters: the only room that opens sockets, files and processes of a cluster."""
