import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * Says what Kafka's own generated classes make of a message. One JSON request a line, one JSON answer a line.
 *
 * {"do": "decode", "name": "FetchRequest", "version": 4, "hex": "…"} -> {"json": …, "hex": "…", "left": 0}
 * {"do": "convert", …, "to": 3} -> {"hex": "…"}, what was decoded written in another version
 * {"do": "encode", "name": "FetchRequest", "version": 4, "json": …}  -> the same, made from JSON
 * {"do": "marker", "producer": 5, "epoch": 0, "commit": true, "coordinator": 3, "time": 9} -> {"hex": "…"}
 * {"do": "apis"}   -> {"apis": [{"key", "name", "min", "max", "stable", "requestHeaders", "responseHeaders"}, …]}
 * {"do": "errors"} -> {"errors": [[code, name, retriable], …]}
 */
public class GoldenBytes {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode answer;
            try {
                answer = answer(MAPPER.readTree(line));
            } catch (Throwable error) {
                Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
                answer = MAPPER.createObjectNode().put("error", cause.toString());
            }
            out.println(MAPPER.writeValueAsString(answer));
            out.flush();
        }
    }

    private static JsonNode answer(JsonNode request) throws Exception {
        switch (request.get("do").asText()) {
            case "decode":
                return decode(request);
            case "convert":
                return convert(request);
            case "encode":
                return encode(request);
            case "marker":
                return marker(request);
            case "apis":
                return apis();
            case "errors":
                return errors();
            default:
                throw new IllegalArgumentException("cannot do " + request.get("do"));
        }
    }

    private static JsonNode decode(JsonNode request) throws Exception {
        ByteBufferAccessor bytes = bytes(request);
        Message message = read(request, bytes);
        return described(request, message, request.get("version").shortValue()).put("left", bytes.remaining());
    }

    private static JsonNode convert(JsonNode request) throws Exception {
        Message message = read(request, bytes(request));
        return MAPPER.createObjectNode().put("hex", hex(message, request.get("to").shortValue()));
    }

    private static ByteBufferAccessor bytes(JsonNode request) {
        return new ByteBufferAccessor(ByteBuffer.wrap(HEX.parseHex(request.get("hex").asText())));
    }

    private static Message read(JsonNode request, ByteBufferAccessor bytes) throws Exception {
        Message message = (Message) dataClass(request).getDeclaredConstructor().newInstance();
        message.read(bytes, request.get("version").shortValue());
        return message;
    }

    private static JsonNode encode(JsonNode request) throws Exception {
        short version = request.get("version").shortValue();
        Object message = converter(request).getMethod("read", JsonNode.class, short.class)
            .invoke(null, request.get("json"), version);
        return described(request, (Message) message, version);
    }

    /** The message as JSON, without the contents of records, and as bytes. */
    private static ObjectNode described(JsonNode request, Message message, short version) throws Exception {
        JsonNode json = (JsonNode) converter(request)
            .getMethod("write", dataClass(request), short.class, boolean.class)
            .invoke(null, message, version, false);
        ObjectNode answer = MAPPER.createObjectNode();
        answer.set("json", json);
        return answer.put("hex", hex(message, version));
    }

    private static String hex(Message message, short version) {
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return HEX.formatHex(copy);
    }

    /** Requests and responses, what consumers say inside them, and the records of the coordinators. */
    private static Class<?> dataClass(JsonNode request) throws ClassNotFoundException {
        String name = request.get("name").asText();
        if (name.endsWith("Request") || name.endsWith("Response")) {
            return Class.forName("org.apache.kafka.common.message." + name + "Data");
        }
        if (name.startsWith("ConsumerProtocol")) {
            return Class.forName("org.apache.kafka.common.message." + name);
        }
        String coordinator = name.startsWith("TransactionLog") ? "transaction" : "group";
        return Class.forName("org.apache.kafka.coordinator." + coordinator + ".generated." + name);
    }

    private static Class<?> converter(JsonNode request) throws ClassNotFoundException {
        return Class.forName(dataClass(request).getName() + "JsonConverter");
    }

    /** The control batch with which Kafka ends a transaction. */
    private static JsonNode marker(JsonNode request) {
        ControlRecordType kind = request.get("commit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        ByteBuffer bytes = MemoryRecords.withEndTransactionMarker(
            request.get("time").longValue(),
            request.get("producer").longValue(),
            request.get("epoch").shortValue(),
            new EndTransactionMarker(kind, request.get("coordinator").intValue())).buffer();
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        return MAPPER.createObjectNode().put("hex", HEX.formatHex(copy));
    }

    private static JsonNode apis() {
        ArrayNode apis = MAPPER.createArrayNode();
        for (ApiMessageType type : ApiMessageType.values()) {
            ObjectNode api = apis.addObject();
            short max = type.highestSupportedVersion(true);
            api.put("key", type.apiKey()).put("name", type.name).put("min", type.lowestSupportedVersion());
            api.put("max", max).put("stable", type.highestSupportedVersion(false));
            ArrayNode requestHeaders = api.putArray("requestHeaders");
            ArrayNode responseHeaders = api.putArray("responseHeaders");
            for (short version = 0; version <= max; version++) {
                requestHeaders.add(type.requestHeaderVersion(version));
                responseHeaders.add(type.responseHeaderVersion(version));
            }
        }
        ObjectNode answer = MAPPER.createObjectNode();
        answer.set("apis", apis);
        return answer;
    }

    private static JsonNode errors() {
        ArrayNode errors = MAPPER.createArrayNode();
        for (Errors error : Errors.values()) {
            errors.addArray().add(error.code()).add(error.name()).add(error.exception() instanceof RetriableException);
        }
        ObjectNode answer = MAPPER.createObjectNode();
        answer.set("errors", errors);
        return answer;
    }
}
