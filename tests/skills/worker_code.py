"""Code of skills that more than one test of workers drops."""

OTHER = 'def other() -> str:\n    """Answers."""\n    return "here"\n'

HANGING = '''
import asyncio, os, subprocess, time
from pathlib import Path

def hangs() -> str:
    """Hangs, with what it started."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path("pids").write_text(f"{os.getpid()} {os.getppid()} {child.pid}")
    while True:
        time.sleep(600)

def waits(for_what: str) -> dict:
    """Waits for a file."""
    while not Path(for_what).exists():
        time.sleep(0.01)
    return {"pid": os.getpid(), "text": "x" * 100_000}

async def waits_too(for_what: str) -> dict:
    """Waits for a file."""
    while not Path(for_what).exists():
        await asyncio.sleep(0.01)
    return {"pid": os.getpid(), "text": "x" * 100_000}
'''

CRASHES = '''
import ctypes, os, signal, socket, sys, threading, time, subprocess

async def exits() -> str:
    """Exits on the loop."""
    sys.exit(3)

def leaves() -> str:
    """Leaves."""
    os._exit(7)

def segfaults() -> str:
    """Crashes."""
    print("nearly there", file=sys.stderr)
    ctypes.string_at(0)

def prints() -> str:
    """Prints garbage."""
    for fd in (1, 2):
        os.write(fd, bytes(range(256)) * 2000)
    return "fine"

def reads() -> str:
    """Reads the standard input."""
    return repr(sys.stdin.read())

def cyclic() -> list:
    """Holds itself."""
    value = []
    value.append(value)
    return value

def odd() -> object:
    """No JSON."""
    class Odd:
        def __str__(self):
            raise ValueError("never")
    return {"odd": {Odd(): 2 ** 70}}

def precise(n: int = 1) -> int:
    """A long number."""
    return n * 2 ** 100

def closes() -> str:
    """Closes every file."""
    os.closerange(0, 1000)
    return "closed"

def scribbles() -> str:
    """Writes to whatever is open."""
    for fd in range(3, 50):
        try:
            os.write(fd, b"\\xff" * 1000)
        except OSError:
            pass
    time.sleep(600)

def forks() -> int:
    """Leaves a process behind, which comes back from this function too."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        return os.getpid()
    return pid

def forks_and_waits() -> str:
    """Leaves a process behind, which comes back from this function first."""
    if os.fork() == 0:
        return "the copy"
    time.sleep(0.5)
    return "the worker"

def threads() -> str:
    """Leaves a thread behind."""
    threading.Thread(target=time.sleep, args=(600,)).start()
    return "left"

def terminates() -> str:
    """What a service manager does to every process of the server."""
    for pid in (os.getppid(), os.getpid()):
        os.kill(pid, signal.SIGTERM)
    time.sleep(0.05)
    return "still here"

def stops_all() -> str:
    """Kills the process above it."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)
'''
