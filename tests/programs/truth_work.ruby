# SPDX-License-Identifier: GPL-2.0-or-later
# Work for tests of frames: truth_work.ruby KIND SECONDS.

def leaf(n)
  n + 1
end

def small(n)
  leaf(n) * 2
end

def middle(n)
  small(n) + leaf(n)
end

def calls
  i = 0
  while i < 300
    middle(i)
    i += 1
  end
end

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

def recursion
  fib(14)
end

def numbers(n)
  return to_enum(:numbers, n) unless block_given?

  n.times { |i| yield leaf(i) }
end

def generators
  numbers(50) { |x| small(x) }
  e = numbers(10)
  10.times { e.next }
end

def fibers
  f = Fiber.new do
    20.times { |i| Fiber.yield small(i) }
    fib(5)
  end
  21.times do
    leaf(1)
    f.resume
  end
end

class Thing
  include Comparable
  attr_reader :x

  def initialize(x)
    @x = x
  end

  def <=>(other)
    leaf(@x) <=> leaf(other.x)
  end

  def method_missing(name, *args)
    small(@x)
  end

  def respond_to_missing?(*)
    true
  end

  define_method(:made) { |n| middle(n) }
end

def callbacks
  (0...30).map { |i| Thing.new(i * 7 % 30) }.sort { |a, b| a <=> b }
  (0...30).sort_by { |i| leaf(-i) }
  ("aabbc" * 10).gsub(/[ab]+/) { |m| small(m.size).to_s }
  (1..20).select { |x| small(x) > 5 }.each_slice(3) { |s| s.sum { |y| leaf(y) } }
  method(:middle).call(1)
  [1, 2].inject { |a, b| send(:middle, a) + b }
end

def methods_
  20.times do |i|
    t = Thing.new(i)
    t.missing(1)
    t.made(i)
    t.instance_eval { small(@x) }
  end
end

def failing(n)
  return failing(n - 1) if n > 0

  raise ArgumentError, "n"
end

def exceptions
  10.times do |i|
    begin
      failing(i)
    rescue ArgumentError
      small(i)
    ensure
      leaf(i)
    end
  end
  catch(:done) { 10.times { |i| throw :done if leaf(i) > 5 } }
end

def churn
  5.times do |i|
    eval("def made_#{i}(x)\n y = x\n 30.times { |k| y += small(k) }\n y\nend\nmade_#{i}(#{i})")
    eval("lambda { |x| leaf(x) }").call(i)
  end
end

def threads(seconds)
  stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  Array.new(4) do
    Thread.new do
      while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
        calls
        recursion
      end
    end
  end.each(&:join)
end

kind = ARGV[0].to_sym
work = %i[calls recursion generators fibers callbacks methods_ exceptions churn]
work = [kind] if kind != :all
$stdout.puts "ready"
$stdout.flush
seconds = ARGV[1].to_f
if kind == :threads
  threads(seconds)
else
  stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  work.each { |f| send(f) } while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
end
