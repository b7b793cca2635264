#!/usr/bin/env escript
%%! +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none
%% SPDX-License-Identifier: GPL-2.0-or-later
%% Functions with one caller each, in several processes: chain_truth.erl SECONDS. The name of a function has that of its
%% caller before the last "_", so that a chain of them is right or wrong by itself. See doc/RUNTIMES.md.
-mode(compile).
-export([main/1]).

%% In compiled code: leaves, frames of many sizes, tail calls within a function.
m_a(0, S) -> S;
m_a(N, S) -> m_a(N - 1, (S + m_a_x(N) * m_a_y(N, S)) rem 1000003).
m_a_x(N) -> N rem 17 + m_a_x_l(N, 8) rem 3.
m_a_x_l(_, 0) -> 1;
m_a_x_l(N, K) -> (N * K + m_a_x_l(N, K - 1)) rem 65537.
m_a_y(N, S) ->
    A = m_a_y_p(N), B = m_a_y_q(S, A), C = m_a_y_r(A, B, N), D = m_a_y_s(A, B, C, S),
    (A + B * 3 + C * 5 + D * 7) rem 8191.
m_a_y_p(N) -> (N * 31) rem 101.
m_a_y_q(S, A) -> try m_a_y_q_t(S, A) catch throw:X -> X end.
m_a_y_q_t(S, A) when S rem 5 =:= 0 -> throw(A);
m_a_y_q_t(S, A) -> (S + A) rem 127.
m_a_y_r(A, B, N) -> lists:sum([m_a_y_r_e(X, A) || X <- [A, B, N]]) rem 1009.
m_a_y_r_e(X, A) -> X bxor A.
m_a_y_s(A, B, C, S) -> element(1 + S rem 3, {A, B, C}) + m_a_y_s_b(S).
m_a_y_s_b(S) -> trunc(S * 2.5) rem 77.

%% Code in C behind compiled code: built-in functions, big numbers, the collector of garbage.
m_b(N) ->
    L = m_b_l(N), S = m_b_s(L), T = m_b_t(S), G = m_b_g(40, 1), M = m_b_m(L), K = m_b_k(L),
    (length(S) + T + G rem 7 + M + K) rem 1000.
m_b_l(N) -> [m_b_l_e(X, N) || X <- lists:seq(1, 600)].
m_b_l_e(X, N) -> {X * 7 rem 101, N, [X]}.
m_b_s(L) -> R = lists:sort(L), lists:reverse(R).
m_b_t(S) -> B = term_to_binary(S), T = m_b_t_u(B), erlang:phash2(T) rem 100.
m_b_t_u(B) -> T = binary_to_term(B), list_to_tuple(T).
m_b_g(0, S) -> S;
m_b_g(N, S) -> m_b_g(N - 1, m_b_g_x(S) bsr 3).
m_b_g_x(S) -> S * 123456789012345678901234567890 + 1.
m_b_m(L) -> M = maps:from_list([{X, Y} || {X, Y, _} <- L]), m_b_m_f(M, L) rem 5000.
m_b_m_f(M, L) -> lists:foldl(fun({X, _, _}, S) -> map_size(M) + maps:get(X, M) + S rem 9 end, 0, L) rem 77.
m_b_k(L) -> R = [E || E = {X, _, _} <- L, lists:keymember(X, 1, L)], length(R).

m(N) ->
    A = m_a(600, N), B = m_b(N),
    erlang:garbage_collect(),
    (A + B) rem 100.

loop(Finish, N) ->
    R = m(N),
    case erlang:monotonic_time(second) < Finish of
        true -> loop(Finish, N + R + 1);
        false -> ok
    end.

main([Seconds]) ->
    io:format("ready~n"),
    Finish = erlang:monotonic_time(second) + list_to_integer(Seconds),
    P = [spawn_monitor(fun() -> loop(Finish, N) end) || N <- [1, 2, 3]],
    [receive {'DOWN', R, _, _, _} -> ok end || {_, R} <- P].
