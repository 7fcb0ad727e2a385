import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactional producers, readers and the admin's calls for transactions: a JSON request a line, an answer a line. */
public final class TransactionHost {
    private static final int TIMEOUT_MS = 30_000;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, Admin> admins = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        TransactionHost host = new TransactionHost();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(json.writeValueAsString(host.answer(json.readTree(line))));
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private Map<String, Object> answer(JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            answer.put("result", perform(request));
        } catch (Exception thrown) {
            answer.put("error", codeOf(thrown));
            answer.put("detail", String.valueOf(thrown) + " <- " + thrown.getCause());
        }
        return answer;
    }

    private Object perform(JsonNode request) throws Exception {
        String name = request.path("name").asText();
        TopicPartition place = new TopicPartition(request.path("topic").asText(), request.path("partition").asInt());
        KafkaProducer<byte[], byte[]> producer = producers.get(name);
        switch (request.get("call").asText()) {
            case "open": producers.put(name, opened(request)); return null;
            case "init": producer.initTransactions(); return null;
            case "begin": producer.beginTransaction(); return null;
            case "send": return send(producer, place, request);
            case "send_offsets": return sendOffsets(producer, request);
            case "commit": producer.commitTransaction(); return null;
            case "abort": producer.abortTransaction(); return null;
            case "close": producers.remove(name).close(Duration.ZERO); return null;
            case "read": return read(place, request);
            case "list": return list(request);
            case "describe": return describe(request);
            case "producers": return activeProducers(place, request);
            case "abort_hanging": return abortHanging(place, request);
            case "fence": return admin(request).fenceProducers(List.of(request.get("id").asText())).all().get();
            case "terminate": return admin(request).forceTerminateTransaction(request.get("id").asText()).result().get();
            case "set_feature": return setFeature(request);
            default: throw new IllegalArgumentException("no such call: " + request.get("call"));
        }
    }

    private static KafkaProducer<byte[], byte[]> opened(JsonNode request) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", request.get("bootstrap").asText());
        settings.put("transactional.id", request.get("id").asText());
        settings.put("transaction.timeout.ms", request.get("timeout_ms").asInt());
        settings.put("linger.ms", 0);
        settings.put("max.block.ms", TIMEOUT_MS);
        settings.put("reconnect.backoff.ms", 20);
        settings.put("reconnect.backoff.max.ms", 200);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static List<Long> send(KafkaProducer<byte[], byte[]> producer, TopicPartition place, JsonNode request) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode value : request.get("values")) {
            sent.add(producer.send(new ProducerRecord<>(place.topic(), place.partition(), bytes(request.get("key")), bytes(value))));
        }
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            offsets.add(each.get().offset());
        }
        return offsets;
    }

    private static Object sendOffsets(KafkaProducer<byte[], byte[]> producer, JsonNode request) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode each : request.get("offsets")) {
            TopicPartition place = new TopicPartition(each.get(0).asText(), each.get(1).asInt());
            offsets.put(place, new OffsetAndMetadata(each.get(2).asLong()));
        }
        producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(
            request.get("group").asText(), request.get("generation").asInt(), request.get("member_id").asText(), Optional.empty()));
        return null;
    }

    private static List<List<Object>> read(TopicPartition place, JsonNode request) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", request.get("bootstrap").asText());
        settings.put("enable.auto.commit", false);
        settings.put("isolation.level", request.get("committed").asBoolean() ? "read_committed" : "read_uncommitted");
        settings.put("fetch.max.wait.ms", 50);
        List<List<Object>> found = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(place));
            consumer.seek(place, request.get("start").asLong());
            long end = consumer.endOffsets(List.of(place)).get(place);
            while (consumer.position(place) < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50))) {
                    found.add(List.of(record.offset(), Base64.getEncoder().encodeToString(record.value())));
                }
            }
        }
        return found;
    }

    private Map<String, String> list(JsonNode request) throws Exception {
        ListTransactionsOptions options = new ListTransactionsOptions();
        if (request.has("states")) {
            List<TransactionState> states = new ArrayList<>();
            request.get("states").forEach(each -> states.add(TransactionState.parse(each.asText())));
            options.filterStates(states);
        }
        if (request.has("producer_id")) {
            options.filterProducerIds(List.of(request.get("producer_id").asLong()));
        }
        if (request.has("duration_ms")) {
            options.filterOnDuration(request.get("duration_ms").asLong());
        }
        if (request.has("pattern")) {
            options.filterOnTransactionalIdPattern(request.get("pattern").asText());
        }
        Map<String, String> found = new LinkedHashMap<>();
        admin(request).listTransactions(options).all().get()
            .forEach(each -> found.put(each.transactionalId(), each.state().toString()));
        return found;
    }

    private Map<String, Object> describe(JsonNode request) throws Exception {
        var found = admin(request).describeTransactions(List.of(request.get("id").asText())).all().get().values().iterator().next();
        List<List<Object>> places = new ArrayList<>();
        found.topicPartitions().forEach(each -> places.add(List.of(each.topic(), each.partition())));
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("state", found.state().toString());
        described.put("producer_id", found.producerId());
        described.put("epoch", found.producerEpoch());
        described.put("timeout_ms", found.transactionTimeoutMs());
        described.put("started", found.transactionStartTimeMs().isPresent());
        described.put("places", places);
        return described;
    }

    private List<Map<String, Object>> activeProducers(TopicPartition place, JsonNode request) throws Exception {
        List<Map<String, Object>> found = new ArrayList<>();
        for (ProducerState each : states(place, request)) {
            found.add(Map.of(
                "producer_id", each.producerId(),
                "epoch", each.producerEpoch(),
                "first_offset", each.currentTransactionStartOffset().orElse(-1),
                "coordinator_epoch", each.coordinatorEpoch().orElse(-1)));
        }
        return found;
    }

    private List<ProducerState> states(TopicPartition place, JsonNode request) throws Exception {
        return admin(request).describeProducers(List.of(place)).partitionResult(place).get().activeProducers();
    }

    private Object abortHanging(TopicPartition place, JsonNode request) throws Exception {
        for (ProducerState each : states(place, request)) {
            if (each.producerId() == request.get("producer_id").asLong()) {
                int coordinatorEpoch = each.coordinatorEpoch().orElse(0);
                admin(request).abortTransaction(new AbortTransactionSpec(
                    place, each.producerId(), (short) each.producerEpoch(), coordinatorEpoch)).all().get();
            }
        }
        return null;
    }

    private Object setFeature(JsonNode request) throws Exception {
        short level = (short) request.get("level").asInt();
        FeatureUpdate update = new FeatureUpdate(level, FeatureUpdate.UpgradeType.valueOf(request.get("how").asText()));
        return admin(request).updateFeatures(Map.of(request.get("feature").asText(), update), new UpdateFeaturesOptions()).all().get();
    }

    private Admin admin(JsonNode request) {
        return admins.computeIfAbsent(request.get("bootstrap").asText(), where -> Admin.create(Map.of("bootstrap.servers", where)));
    }

    /** The broker's code, which may be hidden behind exceptions of the client's own; -1 when there is none. */
    private static int codeOf(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            Errors found = Errors.forException(each);
            if (found != Errors.UNKNOWN_SERVER_ERROR) {
                return found.code();
            }
        }
        return -1;
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }
}
