import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * The lab's orders, as lines on standard input: {@code leave}, {@code block SECONDS}. When standard input ends, the lab
 * has ended, and the program exits at once.
 */
final class Orders {
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

    static Orders listen() {
        Orders orders = new Orders();
        Thread listener = new Thread(orders::read, "orders");
        listener.setDaemon(true);
        listener.start();
        return orders;
    }

    /** Settings given as {@code key=value} after the first argument. */
    static Properties settings(String[] arguments) {
        Properties settings = new Properties();
        for (int i = 1; i < arguments.length; i++) {
            String[] parts = arguments[i].split("=", 2);
            settings.setProperty(parts[0], parts[1]);
        }
        return settings;
    }

    /** Obeys pending orders and waits up to {@code patienceMs} for the next one; returns false after {@code leave}. */
    boolean goOn(long patienceMs) throws InterruptedException {
        String order = lines.poll(patienceMs, TimeUnit.MILLISECONDS);
        if (order == null) {
            return true;
        }
        if (order.startsWith("block ")) {
            Thread.sleep((long) (1000 * Double.parseDouble(order.substring("block ".length()))));
        }
        return !order.equals("leave");
    }

    private void read() {
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                lines.add(line);
            }
        } catch (IOException unreadable) {
            System.err.println(unreadable);
        }
        Runtime.getRuntime().halt(0);
    }
}
