import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

/** Reads "key in hex, number of partitions" by line; says the hash and the partition that Java's producer chooses. */
public class KeyPartitions {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(",", -1);
            byte[] key = HexFormat.of().parseHex(parts[0]);
            int partition = BuiltInPartitioner.partitionForKey(key, Integer.parseInt(parts[1]));
            out.append(Utils.murmur2(key)).append(',').append(partition).append('\n');
        }
        System.out.print(out);
    }
}
