import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache Kafka's clients behind JSON lines: a request a line on standard input, an answer a line on standard output. */
public final class ClientDriver {
    private static final long EARLIEST = -2;
    private static final long LATEST = -1;
    private static final long MAX_TIMESTAMP = -3;
    private static final long TIMEOUT_MS = 30_000;
    private static final int REQUEST_BYTES_MAX = 2_000_000;

    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private KafkaConsumer<byte[], byte[]> consumer;
    private Admin admin;
    private String bootstrap;

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ClientDriver driver = new ClientDriver();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(json.writeValueAsString(driver.answer(json.readTree(line))));
            out.flush();
        }
    }

    private Map<String, Object> answer(JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            answer.put("result", perform(request));
        } catch (Exception thrown) {
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            Errors error = Errors.forException(cause);
            boolean unknown = error == Errors.UNKNOWN_SERVER_ERROR;
            answer.put("error", unknown ? null : error.code());
            answer.put("timeout", cause instanceof TimeoutException);
            answer.put("detail", cause.toString());
        }
        return answer;
    }

    private Object perform(JsonNode request) throws Exception {
        bootstrap = request.get("bootstrap").asText();
        String topic = request.path("topic").asText();
        TopicPartition place = new TopicPartition(topic, request.path("partition").asInt());
        switch (request.get("call").asText()) {
            case "produce": return produce(place, request);
            case "consume": return consume(place, request);
            case "offset_at": return offsetAt(place, request.get("when").asLong());
            case "create_topic": return createTopic(topic, request);
            case "delete_topic": return admin().deleteTopics(List.of(topic)).all().get();
            case "list_topics": return admin().listTopics().names().get();
            case "describe_topic": return describeTopic(topic);
            case "create_partitions":
                return admin().createPartitions(Map.of(topic, NewPartitions.increaseTo(request.get("total").asInt()))).all().get();
            case "describe_config": return describeConfig(request.get("kind").asText(), request.get("name").asText());
            case "change_config": return changeConfig(topic, request);
            case "alter_config": return replaceConfig(topic, request);
            case "delete_records": return deleteRecords(place, request.get("before").asLong());
            case "describe_cluster": return describeCluster();
            case "log_dir_sizes": return logDirSizes(topic);
            case "describe_producers": return describeProducers(place);
            case "quorum_leader": return admin().describeMetadataQuorum().quorumInfo().get().leaderId();
            case "features": return features();
            case "elect_leader": return electLeader(place);
            case "config_resources": return configResources();
            case "quotas": return quotas(request.get("user").asText());
            case "set_quota": return setQuota(request);
            case "groups": return groups(request);
            case "describe_group": return describeGroup(request.get("group").asText());
            case "group_offsets": return groupOffsets(request.get("group").asText(), topic);
            case "alter_group_offsets": return alterGroupOffsets(request, topic);
            case "delete_group": return admin().deleteConsumerGroups(List.of(request.get("group").asText())).all().get();
            case "delete_group_offsets": return deleteGroupOffsets(request, topic);
            default: throw new IllegalArgumentException("no such call: " + request.get("call"));
        }
    }

    private List<String> groups(JsonNode request) throws Exception {
        Set<GroupState> states = new HashSet<>();
        request.get("states").forEach(each -> states.add(GroupState.parse(each.asText())));
        Set<GroupType> types = new HashSet<>();
        request.get("types").forEach(each -> types.add(GroupType.parse(each.asText())));
        List<String> names = new ArrayList<>();
        admin().listGroups(new ListGroupsOptions().inGroupStates(states).withTypes(types)).all().get()
            .forEach(each -> names.add(each.groupId()));
        return names;
    }

    private Map<String, Object> describeGroup(String group) throws Exception {
        var found = admin().describeConsumerGroups(List.of(group)).all().get().get(group);
        Map<String, Object> members = new LinkedHashMap<>();
        for (var member : found.members()) {
            List<Object> places = new ArrayList<>();
            member.assignment().topicPartitions().forEach(each -> places.add(List.of(each.topic(), each.partition())));
            members.put(member.clientId(), places);
        }
        return Map.of("state", found.groupState().name(), "members", members);
    }

    private Map<Integer, Long> groupOffsets(String group, String topic) throws Exception {
        Map<Integer, Long> offsets = new LinkedHashMap<>();
        admin().listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((place, each) -> {
            if (place.topic().equals(topic) && each != null) {
                offsets.put(place.partition(), each.offset());
            }
        });
        return offsets;
    }

    private Object alterGroupOffsets(JsonNode request, String topic) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
        request.get("offsets").fields().forEachRemaining(each -> wanted.put(
            new TopicPartition(topic, Integer.parseInt(each.getKey())), new OffsetAndMetadata(each.getValue().asLong())));
        return admin().alterConsumerGroupOffsets(request.get("group").asText(), wanted).all().get();
    }

    private Object deleteGroupOffsets(JsonNode request, String topic) throws Exception {
        Set<TopicPartition> places = new HashSet<>();
        request.get("partitions").forEach(each -> places.add(new TopicPartition(topic, each.asInt())));
        return admin().deleteConsumerGroupOffsets(request.get("group").asText(), places).all().get();
    }

    private Admin admin() {
        if (admin == null) {
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        }
        return admin;
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode request) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("compression.type", request.get("codec").asText());
        settings.put("enable.idempotence", request.get("idempotent").asBoolean());
        settings.put("acks", request.get("acks").asText());
        settings.put("linger.ms", 5);
        settings.put("max.request.size", REQUEST_BYTES_MAX);
        settings.put("delivery.timeout.ms", (int) TIMEOUT_MS);
        settings.put("request.timeout.ms", 15_000);
        settings.put("max.block.ms", TIMEOUT_MS);
        return producers.computeIfAbsent(
            settings.toString(), key -> new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer()));
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        if (consumer == null) {
            Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", bootstrap);
            settings.put("auto.offset.reset", "none");
            settings.put("enable.auto.commit", false);
            settings.put("fetch.max.wait.ms", 50);
            settings.put("default.api.timeout.ms", (int) TIMEOUT_MS);
            consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }
        return consumer;
    }

    private List<Long> produce(TopicPartition place, JsonNode request) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(request);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode each : request.get("records")) {
            Long stamp = each.get("timestamp").isNull() ? null : each.get("timestamp").asLong();
            ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(place.topic(), place.partition(), stamp, bytes(each.get("key")), bytes(each.get("value")));
            for (JsonNode header : each.get("headers")) {
                record.headers().add(header.get(0).asText(), bytes(header.get(1)));
            }
            sent.add(producer.send(record));
        }
        producer.flush();
        List<Long> offsets = new ArrayList<>();
        boolean reported = !request.get("acks").asText().equals("0");
        for (Future<RecordMetadata> each : sent) {
            RecordMetadata report = each.get();
            if (reported) {
                offsets.add(report.offset());
            }
        }
        return offsets;
    }

    private List<Map<String, Object>> consume(TopicPartition place, JsonNode request) throws Exception {
        int count = request.get("count").asInt();
        long start = request.get("start").asLong();
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        consumer.assign(List.of(place));
        if (start == EARLIEST) {
            consumer.seekToBeginning(List.of(place));
        } else if (start == LATEST) {
            consumer.seekToEnd(List.of(place));
        } else {
            consumer.seek(place, start);
        }
        List<Map<String, Object>> received = new ArrayList<>();
        long deadline = System.currentTimeMillis() + TIMEOUT_MS;
        while (received.size() < count) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                if (received.size() < count) {
                    received.add(describe(record));
                }
            }
            if (System.currentTimeMillis() > deadline) {
                throw new TimeoutException("got " + received.size() + " of " + count + " records from " + place);
            }
        }
        return received;
    }

    private static Map<String, Object> describe(ConsumerRecord<byte[], byte[]> record) {
        List<List<String>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            List<String> pair = new ArrayList<>();
            pair.add(header.key());
            pair.add(text(header.value()));
            headers.add(pair);
        }
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("offset", record.offset());
        described.put("key", text(record.key()));
        described.put("value", text(record.value()));
        described.put("headers", headers);
        described.put("timestamp", record.timestamp());
        described.put("timestamp_type", record.timestampType() == TimestampType.LOG_APPEND_TIME ? "append" : "create");
        return described;
    }

    private Map<String, Object> offsetAt(TopicPartition place, long when) throws Exception {
        OffsetSpec spec = when == EARLIEST ? OffsetSpec.earliest()
            : when == LATEST ? OffsetSpec.latest()
            : when == MAX_TIMESTAMP ? OffsetSpec.maxTimestamp()
            : OffsetSpec.forTimestamp(when);
        var found = admin().listOffsets(Map.of(place, spec)).partitionResult(place).get();
        return Map.of("offset", found.offset(), "timestamp", found.timestamp());
    }

    private Object createTopic(String topic, JsonNode request) throws Exception {
        int partitions = request.get("partitions").asInt();
        NewTopic wanted = new NewTopic(topic, partitions, (short) request.get("replication").asInt());
        wanted.configs(strings(request.get("config")));
        return admin().createTopics(List.of(wanted)).all().get();
    }

    private Map<Integer, Object> describeTopic(String topic) throws Exception {
        Map<Integer, Object> described = new LinkedHashMap<>();
        for (var each : admin().describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions()) {
            described.put(each.partition(),
                Map.of("leader", each.leader().id(), "replicas", ids(each.replicas()), "isr", ids(each.isr())));
        }
        return described;
    }

    private Map<String, Object> describeConfig(String kind, String name) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.valueOf(kind.toUpperCase()), name);
        Map<String, Object> described = new LinkedHashMap<>();
        for (ConfigEntry entry : admin().describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            Map<String, Object> each = new LinkedHashMap<>();
            each.put("value", entry.value());
            each.put("is_default", entry.isDefault());
            each.put("read_only", entry.isReadOnly());
            each.put("sensitive", entry.isSensitive());
            described.put(entry.name(), each);
        }
        return described;
    }

    private Object changeConfig(String topic, JsonNode request) throws Exception {
        List<AlterConfigOp> operations = new ArrayList<>();
        strings(request.get("set_to")).forEach((name, value) ->
            operations.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        for (JsonNode name : request.get("delete")) {
            operations.add(new AlterConfigOp(new ConfigEntry(name.asText(), null), AlterConfigOp.OpType.DELETE));
        }
        return alter(topic, operations);
    }

    /** Java dropped the old AlterConfigs call in 4.0; replacing means deleting what is not named. */
    private Object replaceConfig(String topic, JsonNode request) throws Exception {
        Map<String, String> wanted = strings(request.get("config"));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        List<AlterConfigOp> operations = new ArrayList<>();
        for (ConfigEntry entry : admin().describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG && !wanted.containsKey(entry.name())) {
                operations.add(new AlterConfigOp(new ConfigEntry(entry.name(), null), AlterConfigOp.OpType.DELETE));
            }
        }
        wanted.forEach((name, value) ->
            operations.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        return alter(topic, operations);
    }

    private Object alter(String topic, Collection<AlterConfigOp> operations) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        return admin().incrementalAlterConfigs(Map.of(resource, operations)).all().get();
    }

    private long deleteRecords(TopicPartition place, long before) throws Exception {
        Map<TopicPartition, RecordsToDelete> wanted = Map.of(place, RecordsToDelete.beforeOffset(before));
        return admin().deleteRecords(wanted).lowWatermarks().get(place).get().lowWatermark();
    }

    private Map<String, Object> describeCluster() throws Exception {
        var described = admin().describeCluster();
        Map<Integer, Object> nodes = new LinkedHashMap<>();
        for (Node node : described.nodes().get()) {
            nodes.put(node.id(), List.of(node.host(), node.port()));
        }
        return Map.of("cluster_id", described.clusterId().get(), "controller", described.controller().get().id(), "nodes", nodes);
    }

    private Map<Integer, Long> logDirSizes(String topic) throws Exception {
        int node = admin().describeCluster().controller().get().id();
        Map<Integer, Long> sizes = new LinkedHashMap<>();
        for (var folder : admin().describeLogDirs(List.of(node)).allDescriptions().get().get(node).values()) {
            folder.replicaInfos().forEach((place, replica) -> {
                if (place.topic().equals(topic)) {
                    sizes.put(place.partition(), replica.size());
                }
            });
        }
        return sizes;
    }

    private List<Map<String, Object>> describeProducers(TopicPartition place) throws Exception {
        List<Map<String, Object>> described = new ArrayList<>();
        for (var each : admin().describeProducers(List.of(place)).partitionResult(place).get().activeProducers()) {
            described.add(Map.of(
                "producer_id", each.producerId(), "epoch", each.producerEpoch(), "last_sequence", each.lastSequence()));
        }
        return described;
    }

    private Map<String, Object> features() throws Exception {
        Map<String, Object> levels = new LinkedHashMap<>();
        admin().describeFeatures().featureMetadata().get().finalizedFeatures().forEach((name, range) ->
            levels.put(name, List.of(range.minVersionLevel(), range.maxVersionLevel())));
        return levels;
    }

    private Object electLeader(TopicPartition place) throws Exception {
        Optional<Throwable> problem = admin().electLeaders(ElectionType.PREFERRED, Set.of(place)).partitions().get().get(place);
        if (problem.isPresent()) {
            throw new ExecutionException(problem.get());
        }
        return null;
    }

    private Map<String, Object> configResources() throws Exception {
        Map<String, List<String>> names = new LinkedHashMap<>();
        for (ConfigResource each : admin().listConfigResources().all().get()) {
            names.computeIfAbsent(each.type().name().toLowerCase(), kind -> new ArrayList<>()).add(each.name());
        }
        return new LinkedHashMap<>(names);
    }

    private Map<String, Double> quotas(String user) throws Exception {
        ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity("user", user)));
        Map<String, Double> found = new LinkedHashMap<>();
        admin().describeClientQuotas(filter).entities().get().values().forEach(found::putAll);
        return found;
    }

    private Object setQuota(JsonNode request) throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of("user", request.get("user").asText()));
        Double value = request.get("value").isNull() ? null : request.get("value").asDouble();
        ClientQuotaAlteration.Op change = new ClientQuotaAlteration.Op(request.get("name").asText(), value);
        return admin().alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(change)))).all().get();
    }

    private static List<Integer> ids(List<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }

    private static Map<String, String> strings(JsonNode object) {
        Map<String, String> copied = new LinkedHashMap<>();
        object.properties().forEach(entry -> copied.put(entry.getKey(), entry.getValue().asText()));
        return copied;
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private static String text(byte[] value) {
        return value == null ? null : Base64.getEncoder().encodeToString(value);
    }
}
