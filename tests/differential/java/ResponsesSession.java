import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.requests.AbstractResponse;

/** What the responses of every API and version say about throttling. */
final class ResponsesSession implements Replay.Session {
    @Override
    public String apply(String operation, Line line) {
        line.integer(); // responses know no time
        return switch (operation) {
            case "name" -> name(line.small());
            case "versions" -> versions(line.small());
            case "response" -> response(ApiKeys.forId(line.small()), (short) line.integer());
            default -> throw new IllegalArgumentException(operation);
        };
    }

    private static String name(int id) {
        return ApiKeys.hasId(id) ? ApiKeys.forId(id).name() : "none";
    }

    private static String versions(int id) {
        ApiMessageType type = ApiKeys.forId(id).messageType;
        return type.lowestSupportedVersion() + " " + type.highestSupportedVersion(true);
    }

    private static String response(ApiKeys api, short version) {
        Schema schema = api.messageType.responseSchemas()[version];
        AbstractResponse response = AbstractResponse.parseResponse(
            api, MessageUtil.toByteBufferAccessor(api.messageType.newResponse(), version), version);
        return Wire.flag(schema.get("throttle_time_ms") != null) + " " + Wire.flag(response.shouldClientThrottle(version));
    }
}
