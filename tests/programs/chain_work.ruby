# SPDX-License-Identifier: GPL-2.0-or-later
# main, outer, middle, leaf: one chain, for a number of seconds.

def leaf(n)
  i = sum = 0
  while i < n
    sum = (sum * 31 + i) & 0xffffff
    i += 1
  end
  sum
end

def middle(n)
  leaf(n)
end

# Its block is run by a loop of its own.
def outer(n)
  [1, 2].map { |_| middle(n) }.sum
end

def main(seconds)
  stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  outer(100_000) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
end

main(ARGV[0].to_f)
