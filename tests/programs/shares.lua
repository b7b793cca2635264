-- SPDX-License-Identifier: GPL-2.0-or-later
-- Functions of known shares: shares.lua KIND SECONDS FILE; KIND: plain, async (coroutines). See tests/runtimes. Lua 5.1 to 5.4, LuaJIT.
local spent = { alpha = 0, beta = 0, gamma = 0 }
local told = io.open(arg[3], "w")
told:setvbuf("line")

function never_called()
	return 1
end

local function inner(s, i)
	return (s * 31 + i) % 16777216
end

function alpha()
	local s = 0
	for i = 1, 20000 do
		s = inner(s, i)
	end
	return s
end

local function fib(n)
	return n < 2 and n or fib(n - 1) + fib(n - 2)
end

-- Not by a tail call, which leaves no frame.
function beta()
	local r = fib(18)
	return r
end

local function by_key(a, b)
	return a < b
end

function gamma()
	local l = {}
	for i = 1, 3000 do
		l[i] = i * 7 % 1000
	end
	table.sort(l, by_key)
	return l[1]
end

-- A function has the name by which it is called.
local function work_round()
	local begin = os.clock()
	alpha()
	local middle = os.clock()
	beta()
	local last = os.clock()
	gamma()
	spent.alpha = spent.alpha + middle - begin
	spent.beta = spent.beta + last - middle
	spent.gamma = spent.gamma + os.clock() - last
	told:write(string.format('{"alpha": %.0f, "beta": %.0f, "gamma": %.0f}\n', 1e6 * spent.alpha, 1e6 * spent.beta,
		1e6 * spent.gamma))
end

local finish = os.time() + tonumber(arg[2])
while os.time() < finish do
	if arg[1] == "async" then
		assert(coroutine.resume(coroutine.create(work_round)))
	else
		work_round()
	end
end
