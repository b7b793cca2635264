# SPDX-License-Identifier: GPL-2.0-or-later
"""hang.py FILE: view 6 shows FILE set aside, and the names of 'honest', while FILE's file system hangs."""
import re
import sys

from screen import PROFTOP, Terminal, wrongs

t = Terminal(f"{PROFTOP} -d 0.5", 150, 60)
t.need_rows()
t.press("6")
# On a full machine there are more modules than lines.
t.press("\\")
t.tmux("send-keys", "-l", f"^({re.escape(sys.argv[1])}|honest)$")
t.press("Enter")
t.expect(rf" aside +{re.escape(sys.argv[1])} .*does not respond", "set aside", 60)
t.expect(r" ready +honest .*symtab", "the names of another program", 60)
t.close()
sys.exit(bool(wrongs))
