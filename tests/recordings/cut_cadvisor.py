"""Cut a kubelet's recorded exposition of cAdvisor down to the memory of a few pods and the node.

python tests/recordings/cut_cadvisor.py metrics-cadvisor.txt.gz > tests/recordings/node-1.36-b/cadvisor.txt
"""

import gzip
import re
import sys

KEPT = re.compile(
    r'container_memory_(working_set_bytes|rss|swap)\{.*(id="/"|pod="(be-big|bu-mixed|sc-bu)"|id="/system\.slice").*'
    r'|container_memory_(usage_bytes|rss|cache|swap|total_(in)?active_file_bytes)\{container="c".*pod="tmpfs".*'
)

if __name__ == "__main__":
    with gzip.open(sys.argv[1], "rt", encoding="utf-8") as lines:
        sys.stdout.writelines(filter(KEPT.match, lines))
