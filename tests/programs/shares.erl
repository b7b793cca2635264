#!/usr/bin/env escript
%% Functions of known shares: shares.erl KIND SECONDS FILE; KIND: plain, threads (several processes)
%%! +S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none
%% SPDX-License-Identifier: GPL-2.0-or-later
%% Written to FILE is the CPU time of each, by the clock of the only thread that runs Erlang. See tests/runtimes.
-mode(compile).
-export([main/1, never_called/0]).

never_called() -> 1.

%% Not the last calls: their callers would leave the stack.
sum(0, S) -> S;
sum(N, S) -> sum(N - 1, (S * 31 + N) rem 16777216).

alpha() -> sum(60000, 1) + 1.

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

beta() -> fib(23) + 1.

%% In C: the functions of lists and terms that BEAM has built in.
gamma() ->
    L = lists:seq(1, 3000),
    S = lists:reverse(lists:sort([X * 7 rem 1000 || X <- L])),
    true = lists:member(999, S),
    byte_size(term_to_binary({S, list_to_tuple(L), binary_to_term(term_to_binary(L))})).

times(0, _) -> ok;
times(N, F) -> F(), times(N - 1, F).

clock() -> erlang:statistics(runtime), element(1, erlang:statistics(runtime)).

timed(N, F) ->
    Begin = clock(),
    times(N, F),
    clock() - Begin.

work_round() -> {timed(12, fun alpha/0), timed(12, fun beta/0), timed(3, fun gamma/0)}.

add({A, B, C}, {D, E, F}) -> {A + D, B + E, C + F}.

loop(File, Finish, Spent, Round) ->
    Sum = add(Spent, Round()),
    io:format(File, "{\"alpha\": ~w, \"beta\": ~w, \"gamma\": ~w}~n", tuple_to_list(Sum)),
    case erlang:monotonic_time(second) < Finish of
        true -> loop(File, Finish, Sum, Round);
        false -> ok
    end.

forever() -> work_round(), forever().

%% Turns are taken by calls, not by time: with other processes a round counts as much as it did without them.
rounds("threads") ->
    Alone = lists:foldl(fun(_, Sum) -> add(Sum, work_round()) end, {0, 0, 0}, lists:seq(1, 10)),
    [spawn_link(fun forever/0) || _ <- [1, 2]],
    fun() -> work_round(), Alone end;
rounds(_) -> fun work_round/0.

main([Kind, Seconds, Name]) ->
    {ok, File} = file:open(Name, [write]),
    Round = rounds(Kind),
    loop(File, erlang:monotonic_time(second) + element(1, string:to_integer(Seconds)), {0, 0, 0}, Round).
