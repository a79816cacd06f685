"""pip without the right to start a program, run by the Python of the environment that it installs into.

    python -I pip_alone.py folder-that-holds-pip argument…

Wheels are only unpacked. What pip would have to build runs code of the package, in a process of its own:
`--only-binary` does not keep it from building what a package's requirement names by its address.
"""

import runpy
import sys


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork", "os.forkpty", "os.system"):
        raise PermissionError(f"pip was about to start a program: {arguments[0] if arguments else event}")


if __name__ == "__main__":
    sys.path.insert(0, sys.argv.pop(1))
    sys.addaudithook(_refuse)
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
