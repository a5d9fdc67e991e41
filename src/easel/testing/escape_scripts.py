"""Ways out of the sandbox, as small programs that try them from the inside.

Each is Python, run in a process of its own behind the walls. It gets `bait` (what the host laid out), `call` (a system
call by its number on x86_64 and aarch64, which raises OSError when refused) and `escaped(reason)`. A way is closed when
the program ends with an OSError or says nothing; any other error means that the program itself is wrong.
"""

from __future__ import annotations

PREAMBLE = """
import ctypes, errno, fcntl, json, os, pathlib, platform, resource, signal, socket, struct, sys, traceback
P = pathlib.Path
LIBC = ctypes.CDLL(None, use_errno=True)
COLUMN = 0 if platform.machine() == "x86_64" else 1

class Escaped(Exception): pass

def escaped(reason):
    raise Escaped(str(reason))

def call(x86, arm, *arguments):
    number = (x86, arm)[COLUMN]
    if number is None:
        raise OSError(errno.ENOSYS, "no such call here")
    ctypes.set_errno(0)
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    answer = LIBC.syscall(ctypes.c_long(number), *plain)
    if answer == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer

def read(path):
    text = P(path).read_bytes()[:4096]
    if bait["secret"].encode() in text:
        escaped(f"read {path}")

def listed(folder):
    # Nothing is to be seen there but the way to interpreters that the job was given.
    for root, folders, names in os.walk(folder):
        if root in bait["shown"]:
            folders.clear()
            continue
        for name in (*folders, *names):
            path = f"{root}/{name}"
            if not any(shown == path or shown.startswith(path + "/") for shown in bait["shown"]):
                escaped(path)

def run(script):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code, said = 3, ""
    try:
        exec(script, dict(globals()))
        code = 0
    except Escaped as error:
        code, said = 2, str(error)
    except OSError as error:
        code, said = 0, str(error)
    except BaseException:
        said = traceback.format_exc(limit=-1)
    sys.stdout.write(json.dumps({"name": name, "said": said[:300], "code": code}) + "\\n")
    sys.stdout.flush()
    os._exit(code)
"""

WAYS: dict[str, str] = {
    # Files of the host.
    "the platform's home by its name": "read(bait['home'] + '/signing.key')",
    "the home through ..": "read('/usr/..' + bait['home'] + '/signing.key')",
    "the home with doubled slashes": "read('/' + bait['home'].replace('/', '//') + '/signing.key')",
    "the home through the root of process 1": "read('/proc/1/root' + bait['home'] + '/signing.key')",
    "the home through one's own root": "read('/proc/self/root/../..' + bait['home'] + '/signing.key')",
    "the home above one's own folder": """
for depth in range(1, 12):
    path = P('/proc/self/cwd' + '/..' * depth + bait['home'] + '/signing.key')
    if path.exists(): read(path)
""",
    "the home through a process of the host": "read(f\"/proc/{bait['pid']}/root{bait['home']}/signing.key\")",
    "the home inside an interpreter's folder": """
for found in P(bait['interpreter']).rglob('*'):
    if found.is_file(): read(found)
""",
    "a link from the work folder to the home": """
os.symlink(bait['home'], '/job/link')
read('/job/link/signing.key')
""",
    "another job's folder": "read(bait['home'] + '/run/attempts/other/work/secret')",
    "the password hashes": "escaped(P('/etc/shadow').read_text()[:5])",
    "the names of the host's users": """
for name in bait['users']:
    if name in P('/etc/passwd').read_text().split(':'): escaped(name)
""",
    "root's own folder": "listed('/root')",
    "homes of users": "listed('/home')",
    "sockets of services": "listed('/run')",
    "the host's /var": "listed('/var')",
    "the host's temporary files": """
if P(bait['temporary']).exists(): escaped(bait['temporary'])
""",
    "the host's shared memory files": """
if P('/dev/shm', bait['shared']).exists(): escaped(bait['shared'])
""",
    "disks of the host": """
for found in P('/dev').iterdir():
    if found.is_block_device(): escaped(found)
""",
    "the machine's memory": "os.open('/dev/mem', os.O_RDONLY); escaped('/dev/mem')",
    "the kernel's memory": "escaped(P('/proc/kcore').open('rb').read(4)) if P('/proc/kcore').stat().st_size else None",
    "addresses of the kernel's symbols": "P('/proc/kallsyms').read_bytes() and escaped('kallsyms')",
    "the kernel's messages": "call(103, 116, 10, None, 0); escaped('syslog')",
    "files by their handle": """
room = ctypes.create_string_buffer(struct.pack('=Ii', 8, 1) + b'\\0' * 64)
call(304, 265, -100, room, 0); escaped('open_by_handle_at')
""",
    "the handle of a file": """
room = ctypes.create_string_buffer(struct.pack('=Ii', 128, 0) + b'\\0' * 128)
call(303, 264, -100, b'/usr', room, ctypes.byref(ctypes.c_int()), 0); escaped('name_to_handle_at')
""",
    # Writing where nothing is to be written.
    "writing to the system's programs": "P('/usr/bin/easel-was-here').write_text('x'); escaped('/usr')",
    "writing to the input": "P('/job/input/new').write_text('x'); escaped('input')",
    "writing to /etc": "P('/etc/passwd').open('a'); escaped('/etc/passwd')",
    "writing to the root folder": "P('/new').write_text('x'); escaped('/')",
    "writing to /dev": "P('/dev/new').write_text('x'); escaped('/dev')",
    "a hard link to a program of the system": "os.link('/usr/bin/env', '/job/env'); escaped('linked')",
    # Settings of the kernel.
    "the program that gets core dumps": "P('/proc/sys/kernel/core_pattern').open('r+'); escaped('core_pattern')",
    "any setting under /proc/sys": """
for root, _, names in os.walk('/proc/sys'):
    for name in names:
        try: os.close(os.open(os.path.join(root, name), os.O_WRONLY))
        except OSError: continue
        escaped(os.path.join(root, name))
""",
    "settings under /sys": """
for root, _, names in os.walk('/sys'):
    for name in names:
        try: os.close(os.open(os.path.join(root, name), os.O_WRONLY))
        except OSError: continue
        escaped(os.path.join(root, name))
""",
    "the magic key": "P('/proc/sysrq-trigger').open('w'); escaped('sysrq-trigger')",
    "control groups": "escaped(os.listdir('/sys/fs/cgroup'))",
    "being spared when memory is short": "P('/proc/self/oom_score_adj').write_text('-1000'); escaped('oom_score_adj')",
    "a module for the kernel": "call(175, 105, b'', 0, b''); escaped('init_module')",
    "a module from a file": "call(313, 273, 0, b'', 0); escaped('finit_module')",
    "another kernel": "call(246, 104, 0, 0, None, 0); escaped('kexec_load')",
    "a restart": "call(169, 142, 0xfee1dead, 672274793, 0, None); escaped('reboot')",
    "the clock": "call(164, 170, ctypes.create_string_buffer(16), None); escaped('settimeofday')",
    "the clock's pace": "call(159, 171, ctypes.create_string_buffer(256)); escaped('adjtimex')",
    "the machine's name": "call(170, 161, b'mine', 4); escaped('sethostname')",
    "swap": "call(167, 224, b'/job/swap', 0); escaped('swapon')",
    "accounting": "call(163, 89, b'/job/account'); escaped('acct')",
    "quotas": "call(179, 60, 0x80000100, b'/dev/vda', 0, ctypes.create_string_buffer(64)); escaped('quotactl')",
    "ports of the hardware": "call(172, None, 3); escaped('iopl')",
    "the local descriptor table": "call(154, None, 0, ctypes.create_string_buffer(64), 64); escaped('modify_ldt')",
    "another personality": "call(135, 92, 0x0040000); escaped('personality')",
    # Mounts and namespaces.
    "a mount": "call(165, 40, b'x', b'/tmp', b'tmpfs', 0, None); escaped('mount')",
    "making the system writable": "call(165, 40, None, b'/usr', None, 32 | 4096, None); escaped('remounted')",
    "uncovering /proc/sys": "call(166, 39, b'/proc/sys', 2); escaped('umount')",
    "another root by chroot": "os.chroot('/job'); escaped('chroot')",
    "another root by pivot_root": "call(155, 41, b'/job', b'/job'); escaped('pivot_root')",
    "a detached mount": "call(428, 428, -100, b'/usr', 1); escaped('open_tree')",
    "a new file system": "call(430, 430, b'tmpfs', 0); escaped('fsopen')",
    "a user namespace": "call(272, 97, 0x10000000); escaped('unshare user')",
    "a mount namespace": "call(272, 97, 0x00020000); escaped('unshare mounts')",
    "a network namespace": "call(272, 97, 0x40000000); escaped('unshare network')",
    "a namespace by clone": """
if call(56, 220, 0x10000000 | 17, 0, 0, 0, 0) == 0: os._exit(0)
escaped('clone')
""",
    "a namespace by clone3": """
room = ctypes.create_string_buffer(struct.pack('=QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0))
if call(435, 435, room, 64) == 0: os._exit(0)
escaped('clone3')
""",
    "the namespaces of another process": """
number = os.open('/proc/1/ns/mnt', os.O_RDONLY)
call(308, 268, number, 0); escaped('setns')
""",
    # Other processes.
    "seeing processes of the host": """
seen = [name for name in os.listdir('/proc') if name.isdigit()]
if len(seen) > 16: escaped(f'{len(seen)} processes')
""",
    "a signal to a process of the host": """
if bait['pid'] > 64: os.kill(bait['pid'], 0); escaped('kill')
""",
    "tracing another process": "call(101, 117, 16, 1, 0, 0); escaped('ptrace')",
    "being traced": "call(101, 117, 0, 0, 0, 0); escaped('ptrace me')",
    "reading another process's memory": """
room = ctypes.create_string_buffer(16)
call(310, 270, os.getppid(), room, 0, room, 0, 0); escaped('process_vm_readv')
""",
    "writing another process's memory": """
room = ctypes.create_string_buffer(16)
call(311, 271, os.getppid(), room, 0, room, 0, 0); escaped('process_vm_writev')
""",
    "another process's open files": """
handle = os.pidfd_open(os.getppid())
call(438, 438, handle, 0, 0); escaped('pidfd_getfd')
""",
    "comparing kernel objects": "call(312, 272, os.getpid(), os.getppid(), 0, 0, 0); escaped('kcmp')",
    "files left open by the platform": """
own = os.open('/proc/self/fd', os.O_RDONLY)
left = [name for name in os.listdir(own) if int(name) > 2 and int(name) != own]
for name in left:
    try: target = os.readlink(f'/proc/self/fd/{name}')
    except FileNotFoundError: continue
    if 'pidfd' not in target: escaped(target)
""",
    "variables of the platform": "bait['secret'] in str(dict(os.environ)) and escaped('environment')",
    "shared memory of the host": "call(29, 194, bait['shm_key'], 0, 0); escaped('shmget')",
    "putting words into a terminal": "fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x'); escaped('TIOCSTI')",
    # The kernel's less travelled parts.
    "a program in the kernel": "call(321, 280, 0, ctypes.create_string_buffer(128), 128); escaped('bpf')",
    "performance counters": """
room = ctypes.create_string_buffer(struct.pack('=II', 1, 112) + b'\\0' * 104)
call(298, 241, room, 0, -1, -1, 0); escaped('perf_event_open')
""",
    "page faults by hand": "call(323, 282, 1); escaped('userfaultfd')",
    "keys: adding": "call(248, 217, b'user', b'x', b'y', 1, -3); escaped('add_key')",
    "keys: the session's": "call(250, 219, 0, -3, 1); escaped('keyctl')",
    "rings of requests": "call(425, 425, 4, ctypes.create_string_buffer(128)); escaped('io_uring')",
    "watching all files": "call(300, 262, 0, 0); escaped('fanotify')",
    "calls of another architecture": "call(0x40000000 + 39, None); escaped('x32')",
    # Privileges.
    "becoming root": "os.setuid(0); escaped('setuid')",
    "root's groups": "os.setgroups([0]); escaped('setgroups')",
    "capabilities": """
for line in P('/proc/self/status').read_text().splitlines():
    if line.startswith(('CapEff', 'CapPrm', 'CapBnd', 'CapAmb')) and int(line.split()[1], 16): escaped(line)
""",
    "privileges from a program": """
if 'NoNewPrivs:\\t1' not in P('/proc/self/status').read_text(): escaped('new privileges are possible')
""",
    "running without a filter": """
if 'Seccomp:\\t2' not in P('/proc/self/status').read_text(): escaped('no filter')
""",
    "being root outside": """
inside, outside, _ = map(int, P('/proc/self/uid_map').read_text().split())
if inside == 0: escaped('root inside')
""",
    "a program that keeps its owner's rights": """
P('/job/program').write_text('#!/bin/sh'); os.chmod('/job/program', 0o4755); escaped('setuid file')
""",
    "a device of one's own": "os.mknod('/job/disk', 0o060666, os.makedev(254, 0)); escaped('mknod')",
    # The network.
    "raw packets": "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); escaped('raw')",
    "packets below IP": "socket.socket(17, socket.SOCK_RAW, 3); escaped('AF_PACKET')",
    "the hypervisor's sockets": "socket.socket(40, socket.SOCK_STREAM); escaped('AF_VSOCK')",
    "the kernel's ciphers": "socket.socket(38, 5, 0); escaped('AF_ALG')",
    "the audit log": "socket.socket(16, socket.SOCK_RAW, 9); escaped('NETLINK_AUDIT')",
    "the firewall": "socket.socket(16, socket.SOCK_RAW, 12); escaped('NETLINK_NETFILTER')",
    "a port on the host's loopback": "socket.create_connection(('127.0.0.1', bait['port']), 2); escaped('loopback')",
    "the addresses of the host": """
for address in bait['addresses']:
    try: socket.create_connection((address, bait['port']), 2)
    except OSError: continue
    escaped(address)
""",
    "the cloud's metadata": "socket.create_connection(('169.254.169.254', 80), 2); escaped('metadata')",
    "the internet": "socket.create_connection(('1.1.1.1', 443), 2); escaped('internet')",
    "datagrams to the world": """
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.sendto(b'x', ('1.1.1.1', 53)); escaped('datagram')
""",
    "sockets without a name": """
peer = socket.socket(socket.AF_UNIX); peer.connect('\\0' + bait['abstract']); escaped('abstract socket')
""",
    # Limits.
    "processes without end": """
children = []
try:
    while len(children) <= bait['processes'] * 2:
        pid = os.fork()
        if pid == 0: signal.pause()
        children.append(pid)
except OSError: pass
finally:
    kept = len(children)
    for pid in children: os.kill(pid, 9); os.waitpid(pid, 0)
if kept > bait['processes']: escaped(f'{kept} processes')
""",
    "open files without end": """
held = []
while len(held) <= bait['open_files'] * 2: held.append(os.open('/dev/null', os.O_RDONLY))
escaped(f'{len(held)} files')
""",
    "a file without end": """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open('/job/large', 'wb') as file: file.truncate(bait['file_bytes'] + 1)
escaped('a file beyond the limit')
""",
    "shared memory without end": """
for number in range(2 * bait['shared_mb'] + 1): P(f'/dev/shm/{number}').write_bytes(b'x' * 2**19)
escaped('shared memory beyond the limit')
""",
    "raising one's own limits": """
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
try: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard + 1))
except ValueError: raise PermissionError
escaped('raised')
""",
    "core dumps": "resource.getrlimit(resource.RLIMIT_CORE)[1] and escaped('core dumps')",
    "message queues": "resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1] and escaped('message queues')",
}
