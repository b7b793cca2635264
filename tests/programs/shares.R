# SPDX-License-Identifier: GPL-2.0-or-later
# Functions of known shares: shares.R KIND SECONDS FILE; KIND: plain. R_ENABLE_JIT=0: without its compiler. See tests/runtimes.
args <- commandArgs(trailingOnly = TRUE)
spent <- c(alpha = 0, beta = 0, gamma = 0)
told <- file(args[3], "w")

never_called <- function() 1

inner <- function(s, i) (s * 31 + i) %% 16777216

alpha <- function() {
	s <- 0
	for (i in 1:800) s <- inner(s, i)
	s
}

fib <- function(n) if (n < 2) n else fib(n - 1) + fib(n - 2)

beta <- function() fib(14)

gamma <- function() {
	l <- vapply(1:1500, function(i) i * 7 %% 1000, 0)
	sum(sort(l)) + length(lapply(l, inner, 1))
}

clock <- function() sum(proc.time()[1:2])

work_round <- function() {
	times <- clock()
	for (f in 1:8) alpha()
	times[2] <- clock()
	for (f in 1:8) beta()
	times[3] <- clock()
	for (f in 1:8) gamma()
	times[4] <- clock()
	spent <<- spent + diff(times)
	cat(sprintf('{"alpha": %.0f, "beta": %.0f, "gamma": %.0f}\n', 1e6 * spent[1], 1e6 * spent[2], 1e6 * spent[3]), file = told)
	flush(told)
}

finish <- Sys.time() + as.numeric(args[2])
while (Sys.time() < finish) work_round()
