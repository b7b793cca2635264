// SPDX-License-Identifier: GPL-2.0-or-later
// Functions of known shares: Shares KIND SECONDS FILE; KIND: plain, threads, virtual (Java 21 on). See tests/runtimes.
import java.io.FileWriter;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;

public class Shares {
	static final ThreadMXBean BEAN = ManagementFactory.getThreadMXBean();
	static final long[] SPENT = new long[3];
	static FileWriter told;
	static volatile long sink;
	static boolean virtual;

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
	// A virtual thread has no clock: that of its carrier, on which it stays while it does not wait.
	static long clock() {
		if (!virtual)
			return BEAN.getCurrentThreadCpuTime();
		try {
			return Long.parseLong(new String(Files.readAllBytes(Paths.get("/proc/thread-self/schedstat"))).split(" ")[0]);
		} catch (Exception e) {
			throw new RuntimeException(e);
		}
	}
	static void timed(int at, Runnable f) {
		long begin = clock();
		// The clock of a virtual thread takes a tenth of a round.
		for (int i = virtual ? 16 : 1; i > 0; i--)
			f.run();
		long spent = clock() - begin;
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
		// By name: it is compiled for Java 11.
		if (args[0].equals("virtual")) {
			virtual = true;
			Thread a = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) () -> run(seconds));
			a.join();
			return;
		}
		run(seconds);
	}
}
