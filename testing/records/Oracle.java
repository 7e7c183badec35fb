import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolAssignmentJsonConverter;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.message.ConsumerProtocolSubscriptionJsonConverter;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;

/**
 * What Kafka's own coordinator reads: a line "key value" in hex ("-" for a null value) in, one JSON object a line out.
 *
 * {key, value, version, unread: bytes left over, members: [{subscription, assignment}] of consumer groups} or {error}.
 */
public class Oracle {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] hex = line.split(" ", -1);
            out.println(read(bytes(hex[0]), hex[1].equals("-") ? null : bytes(hex[1])));
        }
        out.flush();
    }

    private static ByteBuffer bytes(String hex) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    }

    private static ObjectNode read(ByteBuffer key, ByteBuffer value) {
        ObjectNode out = JSON.objectNode();
        try {
            CoordinatorRecord record = new GroupCoordinatorRecordSerde().deserialize(key, value);
            out.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
            out.put("unread", key.remaining() + (value == null ? 0 : value.remaining()));
            if (record.value() == null) {
                return out;
            }
            short version = record.value().version();
            out.put("version", version);
            out.set("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(record.value().message(), version));
            if (record.value().message() instanceof GroupMetadataValue group && "consumer".equals(group.protocolType())) {
                members(group.members(), out);
            }
        } catch (RuntimeException error) {
            return JSON.objectNode().put("error", error.toString());
        }
        return out;
    }

    private static void members(List<GroupMetadataValue.MemberMetadata> members, ObjectNode out) {
        var list = out.putArray("members");
        for (GroupMetadataValue.MemberMetadata member : members) {
            ObjectNode opened = list.addObject();
            opened.set("subscription", opened(member.subscription(), true));
            opened.set("assignment", opened(member.assignment(), false));
        }
    }

    private static JsonNode opened(byte[] raw, boolean isSubscription) {
        try {
            ByteBuffer blob = ByteBuffer.wrap(raw);
            short version = blob.getShort();
            ByteBufferAccessor rest = new ByteBufferAccessor(blob);
            if (isSubscription) {
                short known = (short) Math.min(version, ConsumerProtocolSubscription.HIGHEST_SUPPORTED_VERSION);
                return ((ObjectNode) ConsumerProtocolSubscriptionJsonConverter.write(
                    new ConsumerProtocolSubscription(rest, known), known)).put("version", version);
            }
            short known = (short) Math.min(version, ConsumerProtocolAssignment.HIGHEST_SUPPORTED_VERSION);
            return ((ObjectNode) ConsumerProtocolAssignmentJsonConverter.write(
                new ConsumerProtocolAssignment(rest, known), known)).put("version", version);
        } catch (RuntimeException error) {
            return JSON.objectNode().put("error", error.toString());
        }
    }
}
