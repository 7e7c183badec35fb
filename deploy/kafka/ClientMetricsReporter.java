package regroup;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.io.opentelemetry.proto.common.v1.AnyValue;
import org.apache.kafka.shaded.io.opentelemetry.proto.common.v1.KeyValue;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;
import org.apache.kafka.shaded.io.opentelemetry.proto.resource.v1.Resource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A plugin of brokers (KIP-714, Kafka 3.7 and later) that sends what clients push to an OTLP/HTTP address.
 *
 * <p>It adds the labels that only the broker knows, with the names of KIP-714: the client's instance id, client.id, and
 * software. Properties of the broker:
 *
 * <pre>
 * metric.reporters=regroup.ClientMetricsReporter
 * regroup.client.metrics.endpoint=http://regroup:4318/v1/metrics
 * regroup.client.metrics.token.file=/etc/kafka/regroup-token
 * </pre>
 *
 * <p>It never blocks a thread of the broker. While the address does not respond, pushes are dropped and counted.
 */
@SuppressWarnings("removal")
public final class ClientMetricsReporter implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private static final Logger LOG = LoggerFactory.getLogger(ClientMetricsReporter.class);
    private static final String ENDPOINT = "regroup.client.metrics.endpoint";
    private static final String TOKEN_FILE = "regroup.client.metrics.token.file";
    private static final Duration DEADLINE = Duration.ofSeconds(10);
    private static final int MOST_AT_ONCE = 256;
    private static final long REPORT_EACH = 1_000;

    private final Semaphore free = new Semaphore(MOST_AT_ONCE);
    private final AtomicLong dropped = new AtomicLong();
    private final HttpClient client = HttpClient.newBuilder().connectTimeout(DEADLINE).build();
    private URI endpoint;
    private String authorization;

    @Override
    public void configure(Map<String, ?> settings) {
        Object address = settings.get(ENDPOINT);
        if (address == null) {
            throw new ConfigException(ENDPOINT + " is missing: set it to the address that takes OTLP/HTTP.");
        }
        endpoint = URI.create(address.toString());
        Object file = settings.get(TOKEN_FILE);
        try {
            authorization = file == null ? null : "Bearer " + Files.readString(Path.of(file.toString())).strip();
        } catch (java.io.IOException error) {
            throw new ConfigException(TOKEN_FILE + ": the file " + file + " cannot be read.");
        }
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        if (!free.tryAcquire()) {
            drop("too many pushes wait for the address");
            return;
        }
        try {
            HttpRequest.Builder request = HttpRequest.newBuilder(endpoint)
                    .timeout(DEADLINE)
                    .header("Content-Type", "application/x-protobuf")
                    .POST(HttpRequest.BodyPublishers.ofByteArray(labelled(context, payload)));
            if (authorization != null) {
                request.header("Authorization", authorization);
            }
            client.sendAsync(request.build(), HttpResponse.BodyHandlers.discarding()).whenComplete((response, error) -> {
                free.release();
                if (error != null) {
                    drop(error.toString());
                } else if (response.statusCode() / 100 != 2) {
                    drop("the address answered " + response.statusCode());
                }
            });
        } catch (Exception error) {
            free.release();
            drop(error.toString());
        }
    }

    private static byte[] labelled(AuthorizableRequestContext context, ClientTelemetryPayload payload)
            throws java.io.IOException {
        Resource.Builder known = Resource.newBuilder();
        add(known, "client_instance_id", payload.clientInstanceId().toString());
        add(known, "client_id", context.clientId());
        if (context instanceof RequestContext request && request.clientInformation != null) {
            add(known, "client_software_name", request.clientInformation.softwareName());
            add(known, "client_software_version", request.clientInformation.softwareVersion());
        }
        MetricsData.Builder pushed = MetricsData.parseFrom(payload.data()).toBuilder();
        pushed.getResourceMetricsBuilderList()
                .forEach(each -> each.getResourceBuilder().addAllAttributes(known.getAttributesList()));
        return pushed.build().toByteArray();
    }

    private static void add(Resource.Builder resource, String name, String value) {
        if (value != null && !value.isEmpty()) {
            AnyValue text = AnyValue.newBuilder().setStringValue(value).build();
            resource.addAttributes(KeyValue.newBuilder().setKey(name).setValue(text));
        }
    }

    private void drop(String reason) {
        long count = dropped.incrementAndGet();
        if (count % REPORT_EACH == 1) {
            LOG.warn("{} pushes of clients were dropped since the start, the last because {}.", count, reason);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
