"""The last step into the sandbox, run inside it: limits, a filter of system calls, then the program itself.

    python -I -S confine.py [network] [programs] [folder=DEVICE:INODE:PATH] [server] -- program…

bubblewrap decides which files can be seen; this decides how much can be used. It needs nothing but the
standard library and is never imported by the server.

A `server` gets the environment whose names came here with PASSED before them, and no more: so a variable such
as LD_PRELOAD has no effect on bubblewrap or on this.

`folder` was granted: by the time it is mounted another program may have put a link in its place.
"""

import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Collection, Iterator
from typing import NamedTuple

MEGABYTE = 1 << 20
LIMITS = {
    resource.RLIMIT_AS: 1024 * MEGABYTE,
    resource.RLIMIT_FSIZE: 64 * MEGABYTE,
    resource.RLIMIT_NOFILE: 256,
    # Threads count too. The kernel does not hold user 0 to it: so it is not enough without `new_processes`.
    resource.RLIMIT_NPROC: 128,
    resource.RLIMIT_CPU: 900,
    resource.RLIMIT_CORE: 0,
}

# A server lives for days, and V8 reserves more address space than any machine has memory: only what can be
# written counts.
SERVER_LIMITS = {
    **{limit: most for limit, most in LIMITS.items() if limit != resource.RLIMIT_AS},
    resource.RLIMIT_DATA: 1024 * MEGABYTE,
    resource.RLIMIT_NOFILE: 1024,
    resource.RLIMIT_CPU: 24 * 3600,
}
PASSED = "PASSED:"
FOLDER = "folder="


class _Machine(NamedTuple):
    """AUDIT_ARCH_… of linux/audit.h and the system call numbers of asm/unistd_64.h and asm-generic."""

    arch: int
    clone: int
    mmap: int
    socket: int
    socketpair: int
    refused: tuple[int, ...]
    new_processes: tuple[int, ...]


# Refused, in this order: reading and stopping other processes (ptrace, process_vm_readv and _writev,
# pidfd_getfd), new namespaces (unshare, setns), keys of the kernel (add_key, request_key, keyctl), its most
# attacked parts (bpf, perf_event_open, userfaultfd, io_uring_setup), and memory that RLIMIT_AS does not count
# (shmget, msgget, semget, memfd_create, memfd_secret).
MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        clone=56,
        mmap=9,
        socket=41,
        socketpair=53,
        refused=(101, 310, 311, 438, 272, 308, 248, 249, 250, 321, 298, 323, 425, 29, 68, 64, 319, 447),
        new_processes=(57, 58),  # fork, vfork: others have only clone
    ),
    "aarch64": _Machine(
        0xC00000B7,
        clone=220,
        mmap=222,
        socket=198,
        socketpair=199,
        refused=(117, 270, 271, 438, 97, 268, 217, 218, 219, 280, 241, 282, 425, 194, 186, 190, 279, 447),
        new_processes=(),
    ),
}
_CLONE3 = 435
_X32 = 0x40000000
_CLONE_THREAD = 0x00010000
_CLONE_NEW = 0x7E020080  # CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
# MAP_SHARED and MAP_ANONYMOUS: memory that RLIMIT_DATA does not count.
_SHARED, _ANONYMOUS = 0x01, 0x20
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_LOOSE = 0x2  # in the kind of a socket that needs no connection

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT, _SECOND_ARGUMENT, _FOURTH_ARGUMENT = 0, 4, 16, 24, 40
_ALLOW, _KILL, _EPERM, _ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2

_Instruction = tuple[int, int, int, int]


def main(arguments: list[str]) -> None:
    """Become the program, or end with the error; never returns."""
    end = arguments.index("--")
    granted, program = arguments[:end], arguments[end + 1 :]
    _load(list(filter_of(MACHINES[platform.machine()], granted)))
    for word in granted:
        if word.startswith(FOLDER):
            device, inode, path = word.removeprefix(FOLDER).split(":", 2)
            found = os.stat(path)
            if (found.st_dev, found.st_ino) != (int(device), int(inode)):
                raise SystemExit(f"{path} is not the folder that was granted")
    is_server = "server" in granted
    for limit, most in (SERVER_LIMITS if is_server else LIMITS).items():
        resource.setrlimit(limit, (most, most))
    mark = PASSED if is_server else ""
    environment = {key.removeprefix(mark): text for key, text in os.environ.items() if key.startswith(mark)}
    os.execve(program[0], program, environment)  # noqa: S606 (there is no shell to be had)


def filter_of(machine: _Machine, granted: Collection[str]) -> Iterator[_Instruction]:
    """Yield a program for the kernel's packet filter over `struct seccomp_data` (linux/seccomp.h)."""
    yield _LOAD, 0, 0, _ARCH
    yield from _when(_EQUAL, machine.arch, otherwise=_KILL)
    yield _LOAD, 0, 0, _NUMBER
    yield from _when(_AT_LEAST, _X32, then=_EPERM)
    # Its flags lie in memory, where no filter can look; the C library then takes clone.
    yield from _when(_EQUAL, _CLONE3, then=_ENOSYS)
    programs = "programs" in granted
    for number in (*machine.refused, *(() if programs else machine.new_processes)):
        yield from _when(_EQUAL, number, then=_EPERM)
    if "network" in granted:
        # Pairs of sockets that could send to the abstract ones of the machine.
        yield from _without_bits(machine.socketpair, _SECOND_ARGUMENT, _LOOSE)
    # With the network come the abstract sockets of the machine: its screen, its message bus.
    families = (_INET, _INET6, _NETLINK) if "network" in granted else (_UNIX,)
    yield from _only(machine.socket, [(_EQUAL, family) for family in families])
    if programs:
        yield from _only(machine.clone, [(_ANY_BIT, _CLONE_NEW)], matching=_EPERM, otherwise=_ALLOW)
    else:
        yield from _only(machine.clone, [(_ANY_BIT, _CLONE_THREAD)])
    if "server" in granted:
        # Shared pages that belong to no file, which RLIMIT_DATA does not count.
        yield from _without_bits(machine.mmap, _FOURTH_ARGUMENT, _SHARED, _ANONYMOUS)
    yield _RETURN, 0, 0, _ALLOW


def _without_bits(number: int, argument: int, *bits: int) -> Iterator[_Instruction]:
    """Refuse one system call where an argument has all of these bits."""
    yield _EQUAL, 0, len(bits) + 3, number
    yield _LOAD, 0, 0, argument
    for left, bit in zip(range(len(bits), 0, -1), bits, strict=True):
        yield _ANY_BIT, 0, left, bit
    yield _RETURN, 0, 0, _EPERM
    yield _LOAD, 0, 0, _NUMBER


def _when(test: int, value: int, *, then: int = 0, otherwise: int = 0) -> list[_Instruction]:
    """Return with `then` where the test holds, or with `otherwise` where it does not."""
    jump = (0, 1) if then else (1, 0)
    return [(test, *jump, value), (_RETURN, 0, 0, then or otherwise)]


def _only(
    number: int, tests: list[tuple[int, int]], *, matching: int = _ALLOW, otherwise: int = _EPERM
) -> Iterator[_Instruction]:
    """Judge one system call by its first argument: `matching` where a test holds, else `otherwise`."""
    body = [step for test, value in tests for step in _when(test, value, then=matching)]
    yield _EQUAL, 0, len(body) + 2, number
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield from body
    yield _RETURN, 0, 0, otherwise


def _load(instructions: list[_Instruction]) -> None:
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    program = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(instructions), ctypes.addressof(program))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for option, mode, pointer in ((_PR_SET_NO_NEW_PRIVS, 1, None), (_PR_SET_SECCOMP, _FILTER, header)):
        if prctl(option, ctypes.c_ulong(mode), pointer, ctypes.c_ulong(0), ctypes.c_ulong(0)):
            raise OSError(ctypes.get_errno(), "the filter of system calls was not taken")


if __name__ == "__main__":
    main(sys.argv[1:])
