-- SPDX-License-Identifier: GPL-2.0-or-later
-- Work for tests of frames: truth_work.lua KIND SECONDS.
local load = loadstring or load

local function leaf(x) return x + 1 end

local function small(x) return leaf(x) * 2 end

function middle(n)
	return small(n) + leaf(n)
end

local work = {}

function work.calls()
	for i = 0, 299 do
		middle(i)
	end
end

local function fib(n)
	if n < 2 then
		return n
	end
	return fib(n - 1) + fib(n - 2)
end

function work.recursion() fib(12) end

local Thing = {}
Thing.__index = function(thing, key)
	small(3)
	return Thing[key]
end
Thing.__add = function(a, b) return Thing.new(leaf(a.x + b.x)) end
Thing.__lt = function(a, b) return leaf(rawget(a, "x")) < leaf(rawget(b, "x")) end
Thing.__concat = function(a, b) return tostring(small(a.x)) end
Thing.__call = function(self, n) return middle(n) end

function Thing.new(x) return setmetatable({ x = x }, Thing) end

function Thing:get() return leaf(self.x) end

function work.methods()
	local things = {}
	for i = 0, 9 do
		things[#things + 1] = Thing.new(i * 7 % 10)
	end
	table.sort(things)
	for _, t in ipairs(things) do
		local u = t + t
		local text = u .. t
		t:get()
		t(4)
	end
end

function work.callbacks()
	local list = {}
	for i = 0, 29 do
		list[#list + 1] = i * 7 % 30
	end
	table.sort(list, function(a, b) return small(a) < small(b) end)
	local text = ("aabbc"):rep(10):gsub("[ab]+", function(s) return tostring(small(#s)) end)
	for value in (function() return function(_, n) if n < 10 then return leaf(n) end end, nil, 0 end)() do
		middle(value)
	end
end

local function fail(n)
	if n > 0 then
		local m = fail(n - 1)
		return m
	end
	error("n")
end

function work.exceptions()
	for i = 0, 9 do
		if not pcall(fail, i) then
			small(i)
		end
		xpcall(function() fail(2) end, function(message) return small(1) end)
	end
end

function work.churn()
	for i = 0, 4 do
		local made = load("local small, leaf = ...\nlocal y = 0\nfor k = 0, 30 do y = y + small(k) end\n" ..
			"return function(n) return leaf(n) end", i % 2 == 0 and "=made" .. i or nil)
		made(small, leaf)(i)
	end
	collectgarbage("step", 100)
end

function work.closures()
	local subs = {}
	for n = 0, 9 do
		subs[#subs + 1] = function() return n + leaf(n) end
	end
	for _, f in ipairs(subs) do
		f()
	end
	return work.calls()
end

local function numbers(n)
	for i = 1, n do
		coroutine.yield(small(i))
	end
end

local function walk(depth)
	if depth == 0 then
		return numbers(5)
	end
	walk(depth - 1)
	middle(depth)
end

function work.coroutines()
	for _ = 1, 5 do
		local outer = coroutine.wrap(function()
			local inner = coroutine.create(function() walk(3) end)
			while coroutine.status(inner) ~= "dead" do
				local _, value = coroutine.resume(inner)
				middle(1)
				coroutine.yield(value)
			end
		end)
		for _ = 1, 6 do
			outer()
			leaf(1)
		end
	end
end

local order = { "calls", "recursion", "callbacks", "methods", "exceptions", "churn", "closures", "coroutines" }
local kind, seconds = arg[1], tonumber(arg[2])
local open = os.getenv("LD_PRELOAD") and package.loadlib(os.getenv("LD_PRELOAD"), "luaopen_truth")
if open then
	open()
end
if kind ~= "all" then
	order = { kind }
end
local stop = os.time() + seconds
print("ready")
io.stdout:flush()
while os.time() < stop do
	for _, name in ipairs(order) do
		work[name]()
	end
end
