"""`recado serve` with every wake dropped: only the sweep finds work.

python -m tests.chaos.deaf
"""

import app.server
from app.main import create_app
from app.settings import take_settings

if __name__ == "__main__":
    app.server.serve(take_settings(), make_app=lambda settings: create_app(settings, wakes=False))
