// SPDX-License-Identifier: GPL-2.0-or-later
// Functions of known shares: Shares KIND SECONDS FILE; KIND: plain, threads. See tests/runtimes.
import java.io.FileWriter;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

public class Shares {
	static final ThreadMXBean BEAN = ManagementFactory.getThreadMXBean();
	static final long[] SPENT = new long[3];
	static FileWriter told;
	static volatile long sink;

	static int neverCalled() { return 1; }
	static int inner(int s, int i) { return (s * 31 + i) & 0xffffff; }
	static void alpha() {
		int s = 0;
		for (int i = 0; i < 2000000; i++)
			s = inner(s, i);
		sink += s;
	}
	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
	static void beta() { sink += fib(24); }
	static void gamma() {
		Integer[] a = new Integer[6000];
		for (int i = 0; i < a.length; i++)
			a[i] = i * 7 % 1000;
		Arrays.sort(a, (x, y) -> y - x);
		sink += a[0];
	}
	static void timed(int at, Runnable f) {
		long begin = BEAN.getCurrentThreadCpuTime();
		f.run();
		long spent = BEAN.getCurrentThreadCpuTime() - begin;
		synchronized (SPENT) { SPENT[at] += spent; }
	}
	static void workRound() throws Exception {
		timed(0, Shares::alpha);
		timed(1, Shares::beta);
		timed(2, Shares::gamma);
		synchronized (SPENT) {
			told.write("{\"alpha\": " + SPENT[0] + ", \"beta\": " + SPENT[1] + ", \"gamma\": " + SPENT[2] + "}\n");
			told.flush();
		}
	}
	static void run(double seconds) {
		long end = System.nanoTime() + (long) (1e9 * seconds);
		try {
			while (System.nanoTime() < end)
				workRound();
		} catch (Exception e) {
			throw new RuntimeException(e);
		}
	}
	public static void main(String[] args) throws Exception {
		double seconds = Double.parseDouble(args[1]);
		told = new FileWriter(args[2]);
		if (args[0].equals("threads"))
			new Thread(() -> run(seconds)).start();
		run(seconds);
	}
}
