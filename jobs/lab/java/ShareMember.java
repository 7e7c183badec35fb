import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a share group; each record is acknowledged by the next poll. */
final class ShareMember {
    public static void main(String[] arguments) throws InterruptedException {
        Orders orders = Orders.listen();
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(Orders.settings(arguments), bytes, bytes)) {
            consumer.subscribe(List.of(arguments[0]));
            while (orders.goOn(0)) {
                consumer.poll(Duration.ofMillis(250));
            }
        }
    }
}
