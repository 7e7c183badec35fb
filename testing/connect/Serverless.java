import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.connect.proto.AnalyzePlanRequest;
import org.apache.spark.connect.proto.Command;
import org.apache.spark.connect.proto.ConfigRequest;
import org.apache.spark.connect.proto.ExecutePlanRequest;
import org.apache.spark.connect.proto.KeyValue;
import org.apache.spark.connect.proto.WriteStreamOperationStart;
import org.sparkproject.connect.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import org.sparkproject.connect.grpc.Metadata;
import org.sparkproject.connect.grpc.ServerCall;
import org.sparkproject.connect.grpc.ServerCallHandler;
import org.sparkproject.connect.grpc.ServerInterceptor;
import org.sparkproject.connect.grpc.Status;
import org.sparkproject.connect.protobuf.Descriptors.FieldDescriptor;
import org.sparkproject.connect.protobuf.Message;

/**
 * Refuses what serverless compute of Databricks refuses, as its documentation lists it: options of Spark besides a few,
 * rows kept between queries, streams that do not end, and global temporary views.
 *
 * <p>Only in sessions of clients with the header `x-compute: serverless`. The Python workers of a stream use the session
 * of the stream without that header.
 */
public final class Serverless implements ServerInterceptor {
  private static final Set<String> OPTIONS = Set.of(
      "spark.databricks.execution.timeout", "spark.sql.ansi.enabled", "spark.sql.files.maxPartitionBytes",
      "spark.sql.legacy.timeParserPolicy", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions");
  private static final Set<String> STATEMENTS = Set.of("CACHE ", "UNCACHE ", "SET SPARK.", "CREATE GLOBAL ", "ADD JAR");

  private static final Metadata.Key<String> COMPUTE = Metadata.Key.of("x-compute", Metadata.ASCII_STRING_MARSHALLER);

  private final Set<String> sessions = ConcurrentHashMap.newKeySet();

  @Override
  public <Q, R> ServerCall.Listener<Q> interceptCall(
      ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
    return new SimpleForwardingServerCallListener<Q>(next.startCall(call, headers)) {
      private boolean isRefused;

      @Override
      public void onMessage(Q message) {
        String session = session(message);
        if ("serverless".equals(headers.get(COMPUTE))) {
          sessions.add(session);
        } else if (!sessions.contains(session)) {
          super.onMessage(message);
          return;
        }
        String reason = reason(message);
        if (reason == null) {
          super.onMessage(withoutIgnored(message));
          return;
        }
        isRefused = true;
        System.err.println("refused: " + reason);
        call.close(Status.INVALID_ARGUMENT.withDescription(reason), new Metadata());
      }

      @Override
      public void onHalfClose() {
        if (!isRefused) {
          super.onHalfClose();
        }
      }
    };
  }

  private static String session(Object message) {
    Message request = (Message) message;
    FieldDescriptor field = request.getDescriptorForType().findFieldByName("session_id");
    return (String) request.getField(field);
  }

  /** The options of a session's builder are set silently, which ignores those that are not available. */
  @SuppressWarnings("unchecked")
  private static <Q> Q withoutIgnored(Q message) {
    if (!(message instanceof ConfigRequest request) || !request.getOperation().getSet().getSilent()) {
      return message;
    }
    ConfigRequest.Builder changed = request.toBuilder();
    ConfigRequest.Set.Builder set = changed.getOperationBuilder().getSetBuilder().clearPairs();
    request.getOperation().getSet().getPairsList().stream()
        .filter(pair -> OPTIONS.contains(pair.getKey()))
        .forEach(set::addPairs);
    return (Q) changed.build();
  }

  private static String reason(Object message) {
    if (message instanceof ConfigRequest request && !request.getOperation().getSet().getSilent()) {
      for (KeyValue pair : request.getOperation().getSet().getPairsList()) {
        if (!OPTIONS.contains(pair.getKey())) {
          return "[CONFIG_NOT_AVAILABLE] Configuration " + pair.getKey() + " is not available.";
        }
      }
    } else if (message instanceof AnalyzePlanRequest request && request.hasPersist()) {
      return "[NOT_SUPPORTED_WITH_SERVERLESS] PERSIST TABLE is not supported on serverless compute.";
    } else if (message instanceof ExecutePlanRequest request) {
      return reason(request.getPlan().getCommand());
    }
    return null;
  }

  private static String reason(Command command) {
    WriteStreamOperationStart stream = command.getWriteStreamOperationStart();
    String statement = statement(command);
    if (command.hasWriteStreamOperationStart() && !stream.getAvailableNow() && !stream.getOnce()) {
      return "[INFINITE_STREAMING_TRIGGER_NOT_SUPPORTED] The stream has no trigger that ends.";
    } else if (command.getCreateDataframeView().getIsGlobal()) {
      return "[NOT_SUPPORTED_WITH_SERVERLESS] GLOBAL TEMPORARY VIEW is not supported on serverless compute.";
    } else if (command.hasCheckpointCommand()) {
      return "[NOT_SUPPORTED_WITH_SERVERLESS] CHECKPOINT is not supported on serverless compute.";
    } else if (STATEMENTS.stream().anyMatch(statement::startsWith)) {
      return "[NOT_SUPPORTED_WITH_SERVERLESS] " + statement + " is not supported on serverless compute.";
    }
    return null;
  }

  private static String statement(Command command) {
    String text = command.getSqlCommand().getInput().getSql().getQuery() + command.getSqlCommand().getSql();
    return text.strip().toUpperCase(Locale.ROOT);
  }
}
