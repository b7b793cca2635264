# SPDX-License-Identifier: GPL-2.0-or-later
"""Split C files into comments, strings, functions and includes, for tests/figures and tests/style."""
import bisect
import pathlib
import re
from collections import namedtuple

TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*")|'(?:\\.|[^'\\\n])+'""",
    re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
BRACE = re.compile(r"[{};]")
# The text before the brace of a function: its name, its arguments, attributes.
HEAD = re.compile(r"(\w+)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*$")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
TEST = re.compile(r"^tests/(symbols|unwind|sampler|ui)/(\w+/)?test_\w+\.c$|^tests/fuzz/fuzz_\w+\.c$")
LIVE = re.compile(r"^\W*Live: ", re.M)
WORD = re.compile(r"[A-Za-z][A-Za-z']*")

Text = namedtuple("Text", "line text")
Function = namedtuple("Function", "name line lines static comment")


class Source:
    """One C file, split."""

    def __init__(self, path, text=None):
        self.path = str(path)
        self.text = text if text is not None else \
            pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
        self.starts = [0] + [m.end() for m in re.finditer("\n", self.text)]
        self.includes = INCLUDE.findall(self.text)
        self.comments, self.strings = [], []
        self.comment_ends = set()  # lines on which a comment ends
        self.code = self._split()
        self.functions = list(self._functions())

    def line(self, at):
        """Return the line number of an offset, from 1."""
        return bisect.bisect_right(self.starts, at)

    def _split(self):
        """Collect comments and strings; return the code with both blanked."""
        directives = [(m.start(), m.end()) for m in DIRECTIVE.finditer(self.text)]
        begins = [start for start, _ in directives]
        includes = {start for start, end in directives if "include" in self.text[start:end]}
        last_end = -1

        def take(match):
            nonlocal last_end
            start, text = match.span()[0], match.group()
            if match.group("comment"):
                self.comments.append(Text(self.line(start), comment_text(text)))
                self.comment_ends.add(self.line(match.end() - 1))
            elif match.group("string"):
                near = bisect.bisect_right(begins, start) - 1
                if near >= 0 and begins[near] in includes and start < directives[near][1]:
                    pass
                elif last_end >= 0 and not self.text[last_end:start].strip():
                    first = self.strings[-1]
                    self.strings[-1] = Text(first.line, first.text + text[1:-1])
                    last_end = match.end()
                else:
                    self.strings.append(Text(self.line(start), text[1:-1]))
                    last_end = match.end()
            return re.sub(r"[^\n]", " ", text)

        code = TOKEN.sub(take, self.text)
        return DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), code)

    def _functions(self):
        """Yield the functions: a brace at the outermost level behind an argument list."""
        depth, last, head, start = 0, 0, None, 0
        for match in BRACE.finditer(self.code):
            if match.group() == "{":
                if depth == 0:
                    before = ATTRIBUTE.sub(lambda m: " " * len(m.group()),
                                           self.code[last:match.start()]).rstrip()
                    head = HEAD.search(before)
                    start = last + len(before) - len(before.lstrip())
                    static = re.search(r"\bstatic\b", before) is not None
                depth += 1
            elif match.group() == "}":
                depth = max(0, depth - 1)
                if depth == 0:
                    if head and head.group(1) not in ("if", "while", "for", "switch"):
                        first, end = self.line(start), self.line(match.start())
                        yield Function(head.group(1), first, end - first + 1, static,
                                       first - 1 in self.comment_ends)
                    head, last = None, match.end()
            elif depth == 0:
                head, last = None, match.end()


def comment_text(comment):
    """Return a comment without its marks, on one line."""
    text = re.sub(r"^/\*+|\*+/$|^//+", "", comment)
    return re.sub(r"\s*\n[ \t]*(?:\*+|//)?[ \t]*", " ", text).strip()


def words(text):
    """Count the words of a text."""
    return len(WORD.findall(text))


def sources(folder):
    """Return the split C files below a folder."""
    return [Source(p) for p in sorted(pathlib.Path(folder).rglob("*.[ch]"))
            if not {"build", "data"} & set(p.parts)]


def is_pure(path, text):
    """Return whether a file is a test of the pure suite: its first comment has no line "Live: REASON"."""
    return TEST.search(path) is not None and not LIVE.search(text[:1500])
