# SPDX-License-Identifier: GPL-2.0-or-later
# Functions of known shares: shares.exs plain SECONDS FILE, on one scheduler. Written to FILE is the CPU time of each. See tests/runtimes.
defmodule Shares do
  def never_called, do: 1

  # Not the last calls: their callers would leave the stack.
  def alpha, do: sum(60000, 1) + 1

  defp sum(0, s), do: s
  defp sum(n, s), do: sum(n - 1, rem(s * 31 + n, 16777216))

  def beta, do: fib(23) + 1

  defp fib(n) when n < 2, do: n
  defp fib(n), do: fib(n - 1) + fib(n - 2)

  # In Elixir's own modules, with functions without a name.
  def gamma do
    count =
      1..3000
      |> Enum.map(fn x -> rem(x * 7, 1000) end)
      |> Enum.filter(&(rem(&1, 3) != 0))
      |> Enum.group_by(&rem(&1, 17))
      |> Map.values()
      |> Enum.reduce(0, fn l, s -> s + length(Enum.sort(l)) end)

    true = String.length(Integer.to_string(count)) > 0
    count + 1
  end

  defp times(0, _), do: :ok

  defp times(n, f) do
    f.()
    times(n - 1, f)
  end

  defp timed(n, f) do
    start = elem(:erlang.statistics(:runtime), 0)
    times(n, f)
    elem(:erlang.statistics(:runtime), 0) - start
  end

  def loop(file, finish, {a, b, c}) do
    sum = {a + timed(12, &alpha/0), b + timed(12, &beta/0), c + timed(10, &gamma/0)}
    IO.puts(file, ~s({"alpha": #{elem(sum, 0)}, "beta": #{elem(sum, 1)}, "gamma": #{elem(sum, 2)}}))
    if System.monotonic_time(:second) < finish, do: loop(file, finish, sum), else: :ok
  end
end

[_, seconds, name] = System.argv()
{:ok, file} = File.open(name, [:write])
Shares.loop(file, System.monotonic_time(:second) + elem(Integer.parse(seconds), 0), {0, 0, 0})
