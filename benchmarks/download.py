"""The yardstick: download a list page by page with http.client and json.loads, and nothing else.

python benchmarks/download.py URL CA_FILE PATH...
"""

import http.client
import json
import ssl
import sys
from urllib.parse import urlsplit

PAGE = 500


def main() -> None:
    """Every page of every path, parsed and dropped."""
    address = urlsplit(sys.argv[1])
    context = ssl.create_default_context(cafile=sys.argv[2])
    # As lax as kubectl about the extensions of a cluster's CA, which Python 3.13 is not by itself.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    connection = http.client.HTTPSConnection(str(address.hostname), address.port, context=context)
    items = 0
    for path in sys.argv[3:]:
        token = ""
        while True:
            connection.request("GET", f"{path}?limit={PAGE}&continue={token}")
            page = json.loads(connection.getresponse().read())
            items += len(page["items"])
            token = page["metadata"].get("continue", "")
            if not token:
                break
    print(items)


if __name__ == "__main__":
    main()
