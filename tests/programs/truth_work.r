# SPDX-License-Identifier: GPL-2.0-or-later
# Work for tests of frames: truth_work.r KIND SECONDS. KIND: all; interpreted (no compiler).
args <- commandArgs(trailingOnly = TRUE)
if (args[1] == "interpreted") invisible(compiler::enableJIT(0))

fib <- function(n) if (n < 2) n else fib(n - 1) + fib(n - 2)

# An argument is evaluated where it is first used.
lazy <- function(x, y) {
	force(y)
	x + y
}
promises <- function(n) {
	s <- 0
	for (i in seq_len(n)) s <- lazy(lazy(i, s %% 7), lazy(s %% 5, i))
	s
}

# Functions that C calls.
applied <- function(n) {
	l <- lapply(seq_len(n), function(i) lazy(i, 1))
	v <- vapply(l, function(x) x * 2, 0)
	m <- Map(function(a, b) a + b, v, v)
	Reduce(`+`, Filter(function(x) x > 3, unlist(m)))
}

area <- function(shape) UseMethod("area")
area.default <- function(shape) 0
area.square <- function(shape) shape$side ^ 2 + NextMethod()
print_length <- function(s) length(format(s))
methods_s3 <- function(n) {
	square <- structure(list(side = 3), class = "square")
	s <- 0
	for (i in seq_len(n)) s <- s + area(square)
	s
}
"+.money" <- function(e1, e2) structure(unclass(e1) + unclass(e2), class = "money")
"[.money" <- function(x, i) structure(unclass(x)[i], class = "money")
operators <- function(n) {
	m <- structure(c(1, 2, 3), class = "money")
	for (i in seq_len(n)) m <- m + m[1]
	m
}

suppressMessages(library(methods))
setClass("Counter", representation(n = "numeric"))
setGeneric("step", function(object, by) standardGeneric("step"))
setMethod("step", signature("Counter", "numeric"), function(object, by) {
	object@n <- object@n + by
	object
})
methods_s4 <- function(n) {
	counter <- new("Counter", n = 0)
	for (i in seq_len(n)) counter <- step(counter, i)
	counter@n
}
Account <- setRefClass("Account", fields = list(total = "numeric"), methods = list(
	add = function(x) {
		total <<- total + x
		invisible(.self)
	}))
account <- Account$new(total = 0)
references <- function(n) for (i in seq_len(n)) account$add(i)

fails <- function(i) if (i %% 2) stop("odd") else i
errors <- function(n) {
	s <- 0
	for (i in seq_len(n)) s <- s + tryCatch(fails(i), error = function(e) 1, finally = i)
	withCallingHandlers(warned(n), warning = function(w) invokeRestart("muffleWarning"))
	s
}
warned <- function(n) for (i in seq_len(n)) if (i %% 5 == 0) warning("five")
leaves <- function(n) {
	on.exit(n <- 0)
	for (i in seq_len(n)) if (i == n) return(fib(5))
}

calls <- function(n) {
	object <- list(run = function(x) x + 1)
	s <- 0
	for (i in seq_len(n)) {
		s <- s + object$run(i) + base::max(i, 2) + stats::median(c(i, s))
		s <- s + do.call(lazy, list(i, 1)) + do.call("lazy", list(i, 2))
		s <- s + (function(x) x / 2)(i) + eval(quote(lazy(i, 3))) + local(lazy(i, 4))
		s <- s + Recall_down(3)
	}
	s
}
Recall_down <- function(n) if (n > 0) Recall(n - 1) else 0

in_c <- function(n) {
	x <- numeric(0)
	for (i in seq_len(n)) x <- sort(c(x, (i * 7919) %% 1009), method = "radix")
	y <- outer(x, x)
	sum(y %*% x) + nchar(paste(sprintf("%g", x), collapse = ";")) + length(regmatches("a1b22", gregexpr("[0-9]+", "a1b22")))
}

deep <- function(n) if (n) 1 + deep(n - 1) else fib(8)

round <- function() {
	fib(11)
	promises(60)
	applied(80)
	methods_s3(60)
	operators(60)
	methods_s4(20)
	references(20)
	errors(10)
	leaves(20)
	calls(10)
	in_c(60)
	deep(30)
}
round()
cat("ready\n")
finish <- Sys.time() + as.numeric(args[2])
while (Sys.time() < finish) round()
