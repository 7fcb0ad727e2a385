import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Members of groups by Apache Kafka's own consumer, many in one JVM: commands in, events out, a JSON line each. */
public final class GroupHost {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Member> members = new ConcurrentHashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode command = JSON.readTree(line);
            Member member = members.computeIfAbsent(command.get("member").asText(), Member::new);
            member.commands.add(command);
        }
        Runtime.getRuntime().halt(0);
    }

    private static synchronized void emit(Map<String, Object> line) {
        try {
            OUT.println(JSON.writeValueAsString(line));
            OUT.flush();
        } catch (Exception impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** One consumer and the thread that it lives on. */
    private static final class Member implements ConsumerRebalanceListener {
        private final BlockingQueue<JsonNode> commands = new LinkedBlockingQueue<>();
        private final String name;
        private KafkaConsumer<byte[], byte[]> consumer;
        private boolean polling;
        private boolean closed;

        private Member(String name) {
            this.name = name;
            Thread thread = new Thread(this::live, name);
            thread.setDaemon(true);
            thread.start();
        }

        private void live() {
            try {
                while (!closed) {
                    JsonNode command = polling ? commands.poll() : commands.take();
                    if (command == null) {
                        poll();
                    } else {
                        obey(command);
                    }
                }
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }

        private void obey(JsonNode command) {
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("answer", command.get("id").asInt());
            try {
                answer.put("result", perform(command));
            } catch (Exception error) {
                answer.put("error", codeOf(error));
                answer.put("detail", error.toString());
            }
            tell(answer);
        }

        private Object perform(JsonNode command) {
            switch (command.get("call").asText()) {
                case "join": return join(command.get("how"));
                case "hold": polling = false; return null;
                case "go_on": polling = true; return null;
                case "commit": return commit(command.get("offsets"));
                case "committed": return committed(command.get("places"));
                case "seek": consumer.seek(place(command), command.get("offset").asLong()); return null;
                case "close": return close();
                default: throw new IllegalArgumentException("no such call: " + command);
            }
        }

        private Object join(JsonNode how) {
            consumer = new KafkaConsumer<>(settings(how), new ByteArrayDeserializer(), new ByteArrayDeserializer());
            if (how.get("pattern").isNull()) {
                List<String> topics = new ArrayList<>();
                how.get("topics").forEach(topic -> topics.add(topic.asText()));
                consumer.subscribe(topics, this);
            } else if (how.get("protocol").asText().equals("consumer")) {
                consumer.subscribe(new SubscriptionPattern(how.get("pattern").asText()), this);
            } else {
                consumer.subscribe(Pattern.compile(how.get("pattern").asText()), this);
            }
            polling = true;
            return null;
        }

        private static Map<String, Object> settings(JsonNode how) {
            Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", how.get("bootstrap").asText());
            settings.put("group.id", how.get("group").asText());
            settings.put("client.id", how.get("client_id").asText());
            settings.put("group.protocol", how.get("protocol").asText());
            settings.put("auto.offset.reset", how.get("reset").asText());
            settings.put("enable.auto.commit", !how.get("auto_commit_ms").isNull());
            settings.put("auto.commit.interval.ms", how.get("auto_commit_ms").asInt(5000));
            settings.put("max.poll.interval.ms", how.get("rebalance_timeout_ms").asInt());
            settings.put("metadata.max.age.ms", how.get("metadata_age_ms").asInt());
            settings.put("fetch.max.wait.ms", 50);
            settings.put("reconnect.backoff.ms", 20);
            settings.put("reconnect.backoff.max.ms", 200);
            if (how.get("protocol").asText().equals("classic")) {
                settings.put("session.timeout.ms", how.get("session_timeout_ms").asInt());
                settings.put("heartbeat.interval.ms", how.get("heartbeat_ms").asInt());
                settings.put("partition.assignment.strategy", ASSIGNORS.get(how.get("assignor").asText()));
            } else if (!how.get("assignor").isNull()) {
                settings.put("group.remote.assignor", how.get("assignor").asText());
            }
            if (!how.get("instance").isNull()) {
                settings.put("group.instance.id", how.get("instance").asText());
            }
            return settings;
        }

        private void poll() {
            try {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                for (TopicPartition place : records.partitions()) {
                    List<Long> offsets = new ArrayList<>();
                    for (ConsumerRecord<byte[], byte[]> record : records.records(place)) {
                        offsets.add(record.offset());
                    }
                    tell(line("event", "polled", "topic", place.topic(), "partition", place.partition(), "offsets", offsets));
                }
            } catch (RetriableException error) {
                tell(line("event", "noted", "code", codeOf(error), "detail", error.toString()));
            } catch (KafkaException error) {
                polling = false;
                tell(line("event", "failed", "code", codeOf(error), "detail", error.toString()));
            }
        }

        private Object commit(JsonNode offsets) {
            if (offsets.isNull()) {
                consumer.commitSync();
                return null;
            }
            Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
            for (JsonNode each : offsets) {
                TopicPartition place = new TopicPartition(each.get(0).asText(), each.get(1).asInt());
                wanted.put(place, new OffsetAndMetadata(each.get(2).asLong()));
            }
            consumer.commitSync(wanted);
            return null;
        }

        private Object committed(JsonNode places) {
            List<Long> found = new ArrayList<>();
            for (JsonNode each : places) {
                TopicPartition place = new TopicPartition(each.get(0).asText(), each.get(1).asInt());
                OffsetAndMetadata offset = consumer.committed(java.util.Set.of(place)).get(place);
                found.add(offset == null ? null : offset.offset());
            }
            return found;
        }

        private Object close() {
            polling = false;
            closed = true;
            consumer.close();
            return null;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            told("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            told("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            told("lost", partitions);
        }

        private void told(String event, Collection<TopicPartition> partitions) {
            List<Object> places = new ArrayList<>();
            partitions.forEach(each -> places.add(List.of(each.topic(), each.partition())));
            tell(line("event", event, "places", places));
        }

        private void tell(Map<String, Object> line) {
            line.put("member", name);
            emit(line);
        }

        private static TopicPartition place(JsonNode command) {
            return new TopicPartition(command.get("topic").asText(), command.get("partition").asInt());
        }

        private static int codeOf(Throwable error) {
            for (Throwable each = error; each != null; each = each.getCause()) {
                Errors found = Errors.forException(each);
                if (found != Errors.UNKNOWN_SERVER_ERROR) {
                    return found.code();
                }
            }
            return -1;
        }

        private static Map<String, Object> line(Object... pairs) {
            Map<String, Object> line = new LinkedHashMap<>();
            for (int index = 0; index < pairs.length; index += 2) {
                line.put((String) pairs[index], pairs[index + 1]);
            }
            return line;
        }
    }
}
