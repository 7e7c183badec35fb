import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/** Counts the values of a topic: two subtopologies with a repartition topic between them, and a store in memory. */
final class StreamsApp {
    public static void main(String[] arguments) throws InterruptedException {
        Orders orders = Orders.listen();
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[0], Consumed.with(Serdes.ByteArray(), Serdes.String()))
                .groupBy((key, value) -> value, Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), Orders.settings(arguments))) {
            streams.start();
            while (orders.goOn(250)) {
                if (streams.state() == KafkaStreams.State.ERROR) {
                    throw new IllegalStateException("the application stopped");
                }
            }
            streams.close(Duration.ofSeconds(10));
        }
    }
}
