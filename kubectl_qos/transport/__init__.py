"""Connect to a server: kubeconfig, authentication, TLS, proxies. This file has the options."""

from typing import NamedTuple


class ConnectionOptions(NamedTuple):
    """kubectl's connection flags; None, an empty text or False is a flag that is not given."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    cluster: str | None = None
    user: str | None = None
    server: str | None = None
    token: str | None = None
    username: str | None = None
    password: str | None = None
    as_user: str | None = None
    as_uid: str | None = None
    as_groups: tuple[str, ...] = ()
    as_user_extra: tuple[str, ...] = ()
    certificate_authority: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    tls_server_name: str | None = None
    request_timeout: str | None = None
    insecure_skip_tls_verify: bool = False
    disable_compression: bool = False

    @property
    def cluster_flags(self) -> dict[str, str | None]:
        """Return the values of the flags that choose a single cluster and its user."""
        return {
            "--context": self.context,
            "--cluster": self.cluster,
            "--user": self.user,
            "--server": self.server,
            "--token": self.token,
            "--username": self.username,
            "--password": self.password,
            "--tls-server-name": self.tls_server_name,
        }


class StoreOptions(NamedTuple):
    """The address of a store that speaks Prometheus' HTTP API; a text is empty if it is not given.

    `url` may have a path, as Mimir's has; `auto` looks for a service in the cluster. `org_id` is the header
    X-Scope-OrgID; `selector` are labels that each series must have, such as `cluster=prod`.
    """

    url: str = ""
    org_id: str = ""
    selector: str = ""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    server_name: str = ""
    insecure_skip_verify: bool = False
