"""Reports in the words of other kernels, after mm/oom_kill.c and mm/memcontrol.c of their version."""

from __future__ import annotations

from typing import Final

POD: Final = "/kubepods/burstable/podaf389229-5fc5-4617-ae95-9160d576eb49"
CONTAINER: Final = f"{POD}/3b3d031aca1bab63c359a8aac8c18e373ac90373faf12c69e5225aec01fc9c84"

LINUX_3_10: Final = f"""\
java invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=968
java cpuset=3b3d031aca1b mems_allowed=0
CPU: 3 PID: 8310 Comm: java Kdump: loaded Tainted: G        W      ------------ T 3.10.0-957.el7.x86_64 #1
Task in {CONTAINER} killed as a result of limit of {POD}
memory: usage 131072kB, limit 131072kB, failcnt 83
memory+swap: usage 131072kB, limit 262144kB, failcnt 0
kmem: usage 0kB, limit 9007199254740988kB, failcnt 0
Memory cgroup stats for {POD}: cache:0KB rss:0KB
Memory cgroup stats for {CONTAINER}: cache:0KB rss:36KB
[ pid ]   uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name
[ 8290]     0  8290      256        1       4        0          -998 pause
[ 8308]  1000  8308   700000    32000     120       40           968 java
Memory cgroup out of memory: Kill process 8308 (java) score 1894 or sacrifice child
Killed process 8308 (java), UID 1000, total-vm:2800000kB, anon-rss:120000kB, file-rss:8000kB, shmem-rss:0kB
"""

LINUX_4_4: Final = f"""\
java invoked oom-killer: gfp_mask=0x24000c0, order=0, oom_score_adj=968
CPU: 3 PID: 8308 Comm: java Not tainted 4.4.0-210-generic #242-Ubuntu
Task in {CONTAINER} killed as a result of limit of {CONTAINER}
memory: usage 131072kB, limit 131072kB, failcnt 83
memory+swap: usage 131072kB, limit 9007199254740988kB, failcnt 0
[ pid ]   uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name
[ 8308]  1000  8308   700000    32000     120       5        0           968 java
[ 8400]  1000  8400     1000      100       4       3        0           968 sh -c x y
Memory cgroup out of memory: Kill process 8308 (java) score 1894 or sacrifice child
Killed process 8400 (sh -c x y) total-vm:4000kB, anon-rss:300kB, file-rss:100kB
"""

LINUX_4_19: Final = """\
stress-ng-vm invoked oom-killer: gfp_mask=0x6280ca(GFP_HIGHUSER_MOVABLE|__GFP_ZERO), nodemask=(null), \
order=0, oom_score_adj=1000
stress-ng-vm cpuset=/ mems_allowed=0
CPU: 1 PID: 117 Comm: stress-ng-vm Not tainted 4.19.0-27-amd64 #1 Debian 4.19.316-1
Mem-Info:
active_anon:12 inactive_anon:941203 isolated_anon:0
 free:21538 free_pcp:0 free_cma:0
Free swap  = 0kB
Total swap = 524284kB
1048440 pages RAM
0 pages HighMem/MovableOnly
52405 pages reserved
Tasks state (memory values in pages):
[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[    111]     0   111      431      289    49152        0             0 sh
[    114]     0   114     7500     4676    90112        0         -1000 stress-ng
[    116]     0   116  2628942   800000 16052224   131071          1000 stress-ng-vm
[    117]     0   117  2628942   800000 16052224   131071          1000 stress-ng-vm
Out of memory: Kill process 117 (stress-ng-vm) score 1913 or sacrifice child
Killed process 117 (stress-ng-vm) total-vm:10515768kB, anon-rss:3199436kB, file-rss:564kB, shmem-rss:0kB
oom_reaper: reaped process 117 (stress-ng-vm), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
"""

LINUX_5_4: Final = f"""\
nginx: worker p invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=986
CPU: 4 PID: 63635 Comm: nginx: worker p Not tainted 5.4.0-77-generic #86-Ubuntu
memory: usage 262144kB, limit 262144kB, failcnt 9999
memory+swap: usage 262144kB, limit 262144kB, failcnt 0
Memory cgroup stats for {CONTAINER}:
Tasks state (memory values in pages):
[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[  63214]     0 63214   787367    54291  1404928        0           986 nginx: worker p
[  63635]     0 63635   787367     4291   404928        0           986 nginx: worker p
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=3b3d,mems_allowed=0-1,oom_memcg={CONTAINER},\
task_memcg={CONTAINER},task=nginx: worker p,pid=63214,uid=0
Memory cgroup out of memory: Killed process 63214 (nginx: worker p) total-vm:3149468kB, anon-rss:164992kB, \
file-rss:52176kB, shmem-rss:92kB, UID:0 pgtables:1372kB oom_score_adj:986
oom_reaper: reaped process 63214 (nginx: worker p), now anon-rss:0kB, file-rss:0kB, shmem-rss:92kB
"""

LINUX_6_8: Final = """\
python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=200
CPU: 12 UID: 1000 PID: 483880 Comm: python3 Tainted: P           O       6.12.0-50-generic #51-Ubuntu
memory: usage 51200kB, limit 51200kB, failcnt 37
swap: usage 0kB, limit 0kB, failcnt 0
Memory cgroup stats for /user.slice/user-1000.slice/user@1000.service/app.slice/run-u820.service:
Tasks state (memory values in pages):
[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name
[ 483880]  1000 483880    73357    14530    12706     1824         0   180224        0           200 python3
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=user.slice,mems_allowed=0,\
oom_memcg=/user.slice/user-1000.slice/user@1000.service/app.slice/run-u820.service,\
task_memcg=/user.slice/user-1000.slice/user@1000.service/app.slice/run-u820.service,task=python3,pid=483880,uid=1000
Memory cgroup out of memory: Killed process 483880 (python3) total-vm:293428kB, anon-rss:50824kB, \
file-rss:7296kB, shmem-rss:0kB, UID:1000 pgtables:176kB oom_score_adj:200
"""

ALL: Final = {
    "3.10": LINUX_3_10,
    "4.4": LINUX_4_4,
    "4.19": LINUX_4_19,
    "5.4": LINUX_5_4,
    "6.8": LINUX_6_8,
}
