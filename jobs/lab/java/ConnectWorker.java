import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.cli.ConnectDistributed;
import org.apache.kafka.connect.runtime.Connect;
import org.apache.kafka.connect.runtime.distributed.DistributedHerder;

/**
 * A distributed worker. The leader creates the connectors {@code lab.connectors} if they do not exist. Each connector
 * copies the file {@code lab.file} into the topic of the first argument.
 */
final class ConnectWorker {
    public static void main(String[] arguments) throws InterruptedException {
        Orders orders = Orders.listen();
        Map<String, String> settings = new HashMap<>();
        Orders.settings(arguments).forEach((key, value) -> settings.put((String) key, (String) value));
        String names = settings.remove("lab.connectors");
        String file = settings.remove("lab.file");
        Connect<DistributedHerder> connect = new ConnectDistributed().startConnect(settings);
        for (String name : names.split(",")) {
            create(connect.herder(), name, Map.of(
                    "name", name,
                    "connector.class", "org.apache.kafka.connect.file.FileStreamSourceConnector",
                    "file", file,
                    "topic", arguments[0]));
        }
        while (orders.goOn(250)) {
        }
        connect.stop();
    }

    /** Only the leader can create connectors, and only once; errors of other attempts are expected. */
    private static void create(DistributedHerder herder, String name, Map<String, String> config) {
        herder.putConnectorConfig(name, config, false, (refusal, created) -> {});
    }
}
