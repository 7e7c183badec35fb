import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A consumer of Kafka's Java client that reads the topic of the first argument. */
final class PlainConsumer {
    public static void main(String[] arguments) throws InterruptedException {
        Orders orders = Orders.listen();
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Orders.settings(arguments), bytes, bytes)) {
            consumer.subscribe(List.of(arguments[0]));
            while (orders.goOn(0)) {
                consumer.poll(Duration.ofMillis(250));
            }
        }
    }
}
