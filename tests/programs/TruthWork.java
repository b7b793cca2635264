// SPDX-License-Identifier: GPL-2.0-or-later
// Work for tests of Java's frames: TruthWork KIND SECONDS.
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.Deflater;

public class TruthWork {
	static volatile long sink;

	interface Shape {
		int area();
	}

	static final class Square implements Shape {
		final int side;

		Square(int side) {
			this.side = side;
		}

		public int area() {
			return leaf(side) * side;
		}
	}

	static final class Line implements Shape {
		final int length;

		Line(int length) {
			this.length = length;
		}

		public int area() {
			return small(length);
		}
	}

	static final class Circle implements Shape {
		final int radius;

		Circle(int radius) {
			this.radius = radius;
		}

		public int area() {
			return 3 * middle(radius);
		}
	}

	static int leaf(int n) {
		return n * 31 + 7;
	}

	static int small(int n) {
		return leaf(n) * 2;
	}

	static int middle(int n) {
		return small(n) + leaf(n);
	}

	static void calls() {
		for (int i = 0; i < 2000; i++)
			sink += middle(i);
	}

	static int fib(int n) {
		return n < 2 ? n : fib(n - 1) + fib(n - 2);
	}

	static void recursion() {
		sink += fib(18);
	}

	static void collections() {
		Map<String, Integer> words = new HashMap<>();

		for (int i = 0; i < 300; i++)
			words.merge("word" + i % 40, i, Integer::sum);
		for (String word : words.keySet())
			sink += word.hashCode();
	}

	static void lambdas() {
		sink += Arrays.stream(new int[] { 5, 3, 9, 1, 7 }).map(n -> middle(n)).filter(n -> n > 3).sum();
		List<Integer> numbers = new ArrayList<>();
		for (int i = 0; i < 200; i++)
			numbers.add(i * 7919 % 200);
		numbers.sort((a, b) -> leaf(a) - leaf(b));
		sink += numbers.get(0);
	}

	static void dispatch() {
		Shape[] shapes = { new Square(3), new Line(4), new Circle(5) };

		for (int i = 0; i < 600; i++)
			sink += shapes[i % 3].area();
	}

	static int fail(int n) {
		if (n == 0)
			throw new IllegalStateException("0");
		return fail(n - 1) + 1;
	}

	static void exceptions() {
		for (int i = 0; i < 5; i++) {
			try {
				sink += fail(i);
			} catch (IllegalStateException e) {
				sink += e.getStackTrace().length;
			}
		}
	}

	static void strings() {
		StringBuilder text = new StringBuilder();

		for (int i = 0; i < 100; i++)
			text.append(i).append(", ");
		sink += text.toString().split(", ").length + text.indexOf("99, ");
	}

	/* Methods that the compiler replaces by code of its own, which pushes words. */
	static void intrinsics() {
		Map<String, Integer> sorted = new TreeMap<>();
		BigInteger product = BigInteger.ONE;

		for (int i = 0; i < 400; i++)
			sorted.computeIfAbsent("key" + i * 7919 % 400, key -> leaf(key.length()));
		for (int i = 1; i < 120; i++)
			product = product.multiply(BigInteger.valueOf(i)).add(product.multiply(product).shiftRight(2000));
		sink += sorted.size() + product.bitLength();
	}

	static void jni() {
		Deflater deflater = new Deflater();
		byte[] in = new byte[20000], out = new byte[20000];

		for (int i = 0; i < in.length; i++)
			in[i] = (byte) (i * i % 251);
		deflater.setInput(in);
		deflater.finish();
		sink += deflater.deflate(out);
		deflater.end();
	}

	static final Map<String, Runnable> WORK = Map.of("calls", TruthWork::calls, "recursion", TruthWork::recursion,
			"collections", TruthWork::collections, "lambdas", TruthWork::lambdas, "dispatch", TruthWork::dispatch,
			"exceptions", TruthWork::exceptions, "strings", TruthWork::strings, "intrinsics", TruthWork::intrinsics, "jni", TruthWork::jni);

	static void work(String kind, long seconds) {
		long end = System.nanoTime() + seconds * 1000000000L;

		while (System.nanoTime() < end)
			for (Map.Entry<String, Runnable> each : WORK.entrySet())
				if (kind.equals("all") || kind.equals("threads") || kind.equals(each.getKey()))
					each.getValue().run();
	}

	public static void main(String[] args) {
		long seconds = Long.parseLong(args[1]);

		System.out.println("ready");
		System.out.flush();
		for (int i = 0; args[0].equals("threads") && i < 3; i++)
			new Thread(() -> work(args[0], seconds)).start();
		work(args[0], seconds);
	}
}
