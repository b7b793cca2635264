# SPDX-License-Identifier: GPL-2.0-or-later
# Functions of known shares: shares.ruby KIND SECONDS FILE; KIND: plain, threads. See tests/runtimes.
SPENT = { alpha: 0, beta: 0, gamma: 0 }
LOCK = Mutex.new
TOLD = File.open(ARGV[2], 'w')
TOLD.sync = true

def never_called
  1
end

def inner(s, i)
  (s * 31 + i) & 0xffffff
end

def alpha
  s = 0
  i = 0
  while i < 20000
    s = inner(s, i)
    i += 1
  end
end

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def beta
  fib(17)
end

def gamma
  (0...4000).map { |i| i * 7 % 1000 }.sort_by { |x| -x }
end

def clock
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
end

def timed(name)
  start = clock
  yield
  LOCK.synchronize { SPENT[name] += clock - start }
end

def work_round
  timed(:alpha) { alpha }
  timed(:beta) { beta }
  timed(:gamma) { gamma }
  LOCK.synchronize { TOLD.write(%({"alpha": #{SPENT[:alpha]}, "beta": #{SPENT[:beta]}, "gamma": #{SPENT[:gamma]}}\n)) }
end

def run
  finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[1].to_f
  work_round while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
end

if ARGV[0] == 'threads'
  2.times.map { Thread.new { run } }.each(&:join)
else
  run
end
