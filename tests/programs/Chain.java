// SPDX-License-Identifier: GPL-2.0-or-later
// A chain of calls that a profiler must show whole: main, outer, middle, leaf. Arguments: seconds, "gc": with collections.
public class Chain {
	static long sink;

	static long leaf(int n) {
		long sum = n;
		for (int i = 0; i < 20000; i++)
			sum = sum * 31 + i;
		return sum;
	}

	static long middle(int n) {
		return leaf(n) + 1;
	}

	static long outer(int n) {
		return middle(n) + 1;
	}

	static void collect() {
		try {
			for (;; Thread.sleep(20))
				System.gc();
		} catch (InterruptedException e) {
			return;
		}
	}

	public static void main(String[] args) {
		long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L;

		if (args.length > 1) {
			Thread collector = new Thread(Chain::collect);
			collector.setDaemon(true);
			collector.start();
		}
		System.out.println("ready");
		System.out.flush();
		while (System.nanoTime() < end)
			sink += outer(3);
	}
}
