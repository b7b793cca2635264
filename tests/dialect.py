# SPDX-License-Identifier: GPL-2.0-or-later
"""Phrases that doc/STYLE.md bans, and how often programs of the same kind use them.

The number is a budget: uses per 10,000 words of comment, the highest of htop, tig, tmux and
uftrace (their main branches of summer 2026). Strings that a user sees have a budget of 0.
"""
import re

PHRASES = {
    "what": (3.0, r"what"),
    "who, whose": (1.1, r"who|whose|whom"),
    "where it/they/the": (2.4, r"where (?:it|they|the)"),
    "those": (1.3, r"those"),
    "of it": (0.6, r"of it"),
    "tell, told": (1.3, r"tells?|told|telling"),
    "nobody, whoever, anyone": (0.4, r"nobody|whoever|anyone|anybody|everybody|everyone"),
    "person, people": (0.8, r"persons?|people"),
    "anew": (0, r"anew"),
    "meanwhile": (0, r"meanwhile"),
    ", too": (0, r", too(?=[.,;:)\0]|$| \()"),
    "cannot be.": (0, r"cannot be(?=[.,;:)\0]|$)"),
    "is called": (0.8, r"(?:is|are) called(?! (?:by|with|from|in|on|when|once|at|for|to|after|before))"),
    "come, came": (2.8, r"comes?|came|coming"),
    "by itself": (0.9, r"by (?:itself|themselves)"),
    "for want of": (0, r"for (?:want|lack) of"),
    "room for": (3.4, r"(?:no|more|make|leaves?) room|room (?:for|left)"),
    "of late": (0, r"of late"),
    "its own": (1.9, r"(?:its|their) own"),
    "so many, as many": (0.4, r"(?:so|as) many"),
    "in turns": (0.4, r"in turns?"),
    "at once": (0.4, r"at once"),
    "let go": (0, r"lets? go"),
    "all the same": (0, r"all the same"),
    "cure": (0, r"cures?|cured|remed(?:y|ies)"),
    "dump": (1.1, r"dumps?|dumped"),
    "told apart": (0, r"told apart"),
    "stays": (1.2, r"stays?"),
    "lies, stands": (0.2, r"lies|stands"),
    "asks, asked": (0.4, r"asked|asks?"),
}
PATTERNS = {
    name: (budget, re.compile(p if p[0] == "," else rf"(?<![\w.-])(?:{p})(?![\w-])", re.I))
    for name, (budget, p) in PHRASES.items()}


def count(texts):
    """Return the uses of each phrase in a list of texts."""
    text = "\0".join(texts)
    return {name: len(pattern.findall(text)) for name, (_, pattern) in PATTERNS.items()}
