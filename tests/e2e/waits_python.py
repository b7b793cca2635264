# SPDX-License-Identifier: GPL-2.0-or-later
"""Six threads that sleep in turns, holding one lock. Until killed."""
import threading
import time

lock = threading.Lock()


def hold():
    while True:
        with lock:
            time.sleep(0.01)


for _ in range(5):
    threading.Thread(target=hold, daemon=True).start()
hold()
