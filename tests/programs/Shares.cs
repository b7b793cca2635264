// SPDX-License-Identifier: GPL-2.0-or-later
// Functions of known shares: Shares KIND SECONDS FILE; KIND: plain, threads, async, throws. See tests/runtimes.
using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

public static class Shares {
	[StructLayout(LayoutKind.Sequential)]
	struct Time {
		public long Seconds, Nanoseconds;
	}
	[DllImport("libc.so.6")]
	static extern int clock_gettime(int clock, out Time time);

	static readonly long[] spent = new long[3];
	static StreamWriter told;
	static long sink;
	static bool throws;
	static int direction = 1;

	static int neverCalled() { return 1; }
	static int inner(int s, int i) { return (s * 31 + i) & 0xffffff; }
	static void alpha() {
		int s = 0;
		for (int i = 0; i < 2000000; i++)
			s = inner(s, i);
		sink += s;
	}
	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
	static void fail(int n) {
		if (n == 0)
			throw new InvalidOperationException("x");
		fail(n - 1);
	}
	static void beta() {
		for (int i = 0; throws && i < 20; i++) {
			try {
				fail(10);
			} catch (InvalidOperationException e) {
				sink += e.Message.Length;
			}
		}
		sink += fib(24);
	}
	static int largest<T>(List<T> all, Comparison<T> order) {
		all.Sort(order);
		return all.Count;
	}
	// Lambdas are methods of an object, as Roslyn makes them: for static ones, as mcs does, the runtime has a thunk without name.
	static void gamma() {
		int down = direction;
		var a = new List<int>();
		var b = new List<string>();
		for (int i = 0; i < 6000; i++)
			a.Add(i * 7 % 1000);
		for (int i = 0; i < 300; i++)
			b.Add((i * 7 % 100).ToString());
		sink += largest(a, (x, y) => down * (y - x)) + largest(b, (x, y) => down * string.CompareOrdinal(y, x));
	}
	static long clock() {
		Time t;
		clock_gettime(3, out t);
		return t.Seconds * 1000000000 + t.Nanoseconds;
	}
	static void timed(int at, Action f) {
		long begin = clock();
		f();
		Interlocked.Add(ref spent[at], clock() - begin);
	}
	static void tell() {
		lock (spent) {
			told.Write("{\"alpha\": " + spent[0] + ", \"beta\": " + spent[1] + ", \"gamma\": " + spent[2] + "}\n");
			told.Flush();
		}
	}
	static void workRound() {
		timed(0, alpha);
		timed(1, beta);
		timed(2, gamma);
		tell();
	}
	static async Task awaitRound() {
		timed(0, alpha);
		await Task.Yield();
		timed(1, beta);
		await Task.Yield();
		timed(2, gamma);
		tell();
	}
	static async Task awaitAll(DateTime end) {
		while (DateTime.UtcNow < end)
			await awaitRound();
	}
	static void run(DateTime end) {
		while (DateTime.UtcNow < end)
			workRound();
	}
	public static int Main(string[] args) {
		DateTime end = DateTime.UtcNow.AddSeconds(double.Parse(args[1]));
		told = new StreamWriter(args[2]);
		throws = args[0] == "throws";
		if (args[0] == "async") {
			Task.WaitAll(awaitAll(end), awaitAll(end));
			return 0;
		}
		if (args[0] == "threads")
			new Thread(() => run(end)).Start();
		run(end);
		return 0;
	}
}

// Run by the runtime itself in a program that is one file: DOTNET_STARTUP_HOOKS is this library.
internal class StartupHook {
	public static void Initialize() {
		string args = Environment.GetEnvironmentVariable("SHARES");
		if (args != null)
			Environment.Exit(Shares.Main(args.Split(' ')));
	}
}
