import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.cli.ConnectDistributed;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.runtime.Connect;
import org.apache.kafka.connect.runtime.distributed.DistributedHerder;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * A distributed worker. The leader creates the connectors {@code lab.connectors} if they do not exist. Each connector
 * copies the lines of the file {@code lab.file} into the topic of the first argument.
 */
public final class ConnectWorker {
    public static void main(String[] arguments) throws InterruptedException {
        Orders orders = Orders.listen();
        Map<String, String> settings = new HashMap<>();
        Orders.settings(arguments).forEach((key, value) -> settings.put((String) key, (String) value));
        String names = settings.remove("lab.connectors");
        String file = settings.remove("lab.file");
        Connect<DistributedHerder> connect = new ConnectDistributed().startConnect(settings);
        for (String name : names.isEmpty() ? new String[0] : names.split(",")) {
            create(connect.herder(), name, Map.of(
                    "name", name,
                    "connector.class", FileSource.class.getName(),
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

    /** A connector with one task. Kafka's own file connector needs classes that its releases since 4.4 do not have. */
    public static final class FileSource extends SourceConnector {
        private Map<String, String> config;

        @Override
        public void start(Map<String, String> config) {
            this.config = config;
        }

        @Override
        public Class<? extends Task> taskClass() {
            return FileTask.class;
        }

        @Override
        public List<Map<String, String>> taskConfigs(int most) {
            return List.of(config);
        }

        @Override
        public ConfigDef config() {
            return new ConfigDef();
        }

        @Override
        public String version() {
            return "1";
        }

        @Override
        public void stop() {
        }
    }

    /** Sends the lines of a file, from its beginning after each start; waits for further lines at its end. */
    public static final class FileTask extends SourceTask {
        private BufferedReader lines;
        private String topic;

        @Override
        public void start(Map<String, String> config) {
            topic = config.get("topic");
            try {
                lines = Files.newBufferedReader(Path.of(config.get("file")));
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            try {
                String line = lines.readLine();
                if (line != null) {
                    return List.of(new SourceRecord(Map.of(), Map.of(), topic, Schema.STRING_SCHEMA, line));
                }
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
            Thread.sleep(200);
            return null;
        }

        @Override
        public String version() {
            return "1";
        }

        @Override
        public void stop() {
        }
    }
}
