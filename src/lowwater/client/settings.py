"""The settings of every client that concern connections, and which other names stand for them.

Names and meanings are Kafka's or librdkafka's; where the two differ in name, both are taken.
"""

from __future__ import annotations

from lowwater.config.setting import INT_MAX, Kind, Setting, at_least, between, one_of

_MS = between(0, INT_MAX)

CONNECTION_SETTINGS = (
    Setting("bootstrap.servers", Kind.LIST, None, "Where to begin: host:port of some brokers. They are tried in turn."),
    Setting("client.id", Kind.STRING, "lowwater", "What brokers call this client in their logs and quotas."),
    Setting("client.rack", Kind.STRING, "", "Where this client runs, for fetching from a replica nearby."),
    Setting("security.protocol", Kind.STRING, "PLAINTEXT", "Whether connections are encrypted and log in.",
            one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    Setting("socket.connection.setup.timeout.ms", Kind.INT, 10_000,
            "How long connecting may take, TLS and login included.", between(1, INT_MAX)),
    Setting("request.timeout.ms", Kind.INT, 30_000, "How long one request may wait for its answer.",
            between(1, INT_MAX)),
    Setting("default.api.timeout.ms", Kind.INT, 60_000, "How long a call may take with everything that is retried.",
            between(1, INT_MAX)),
    Setting("retry.backoff.ms", Kind.INT, 100, "The wait before the first retry; it doubles with each further one.",
            between(1, INT_MAX)),
    Setting("retry.backoff.max.ms", Kind.INT, 1_000, "The longest wait before a retry.", between(1, INT_MAX)),
    Setting("reconnect.backoff.ms", Kind.INT, 50, "The wait before connecting again after a failure; it doubles.",
            _MS),
    Setting("reconnect.backoff.max.ms", Kind.INT, 1_000, "The longest wait before connecting again.", _MS),
    Setting("connections.max.idle.ms", Kind.INT, 540_000, "Close a connection after so long without use; 0: never.",
            _MS),
    Setting("max.in.flight.requests.per.connection", Kind.INT, 5, "Requests sent and not yet answered, per broker.",
            between(1, 1_000_000)),
    Setting("socket.send.buffer.bytes", Kind.INT, -1, "Of the system; -1 or 0: as it sees fit.", at_least(-1)),
    Setting("socket.receive.buffer.bytes", Kind.INT, -1, "Of the system; -1 or 0: as it sees fit.", at_least(-1)),
    Setting("socket.keepalive.enable", Kind.BOOLEAN, True, "Let the system notice peers that are gone."),
    Setting("socket.nagle.disable", Kind.BOOLEAN, True, "Send small requests without delay."),
    Setting("broker.address.family", Kind.STRING, "any", "Which addresses of a host name to use.",
            one_of("any", "v4", "v6")),
    Setting("receive.message.max.bytes", Kind.INT, 128 * 1024 * 1024, "The largest answer that is accepted.",
            between(1_000, INT_MAX)),
    Setting("metadata.max.age.ms", Kind.INT, 300_000, "Ask for topics and leaders again after so long.",
            between(1, INT_MAX)),
    Setting("topic.metadata.propagation.max.ms", Kind.INT, 5_000,
            "How long a topic that is not there may still appear, before that is an error.", _MS),
    Setting("allow.auto.create.topics", Kind.BOOLEAN, False, "Let brokers create a topic that is asked for."),
)  # fmt: skip

SECURITY_SETTINGS = (
    Setting("sasl.mechanism", Kind.STRING, None, "How to log in.",
            one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")),
    Setting("sasl.username", Kind.STRING, None, "For PLAIN and SCRAM."),
    Setting("sasl.password", Kind.PASSWORD, None, "For PLAIN and SCRAM."),
    Setting("sasl.oauthbearer.token", Kind.PASSWORD, None, "For OAUTHBEARER: the token, where it does not change."),
    Setting("sasl.oauthbearer.config", Kind.STRING, "", "For OAUTHBEARER: given to oauth_cb."),
    Setting("sasl.oauthbearer.extensions", Kind.STRING, "", "For OAUTHBEARER: name=value,… sent with the token."),
    Setting("ssl.ca.location", Kind.STRING, None, "PEM file or directory of the authorities to trust, instead of "
            "those of the system; probe: those of the system."),
    Setting("ssl.ca.pem", Kind.STRING, None, "The same as text."),
    Setting("ssl.certificate.location", Kind.STRING, None, "PEM file of the client's certificate, its chain behind."),
    Setting("ssl.certificate.pem", Kind.STRING, None, "The same as text."),
    Setting("ssl.key.location", Kind.STRING, None, "PEM file of the client's private key."),
    Setting("ssl.key.pem", Kind.PASSWORD, None, "The same as text."),
    Setting("ssl.key.password", Kind.PASSWORD, None, "Of the private key."),
    Setting("ssl.cipher.suites", Kind.STRING, None, "For TLS 1.2, as OpenSSL writes them."),
    Setting("ssl.endpoint.identification.algorithm", Kind.STRING, "https",
            "https: the certificate must name the host; none or empty: any name.", one_of("https", "none", "")),
    Setting("enable.ssl.certificate.verification", Kind.BOOLEAN, True,
            "Whether the broker's certificate is checked at all."),
)  # fmt: skip

ALIASES = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "socket.timeout.ms": "request.timeout.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "request.required.acks": "acks",
    "queue.buffering.max.ms": "linger.ms",
    "compression.codec": "compression.type",
    "message.timeout.ms": "delivery.timeout.ms",
    "message.send.max.retries": "retries",
    "message.max.bytes": "max.request.size",
}

CALLABLES = frozenset({"oauth_cb"})

# What other clients know and has no meaning here. Programs that are moved over keep them.
IGNORED = frozenset(
    """
    api.version.fallback.ms api.version.request api.version.request.timeout.ms auto.include.jmx.reporter
    background_event_cb batch.num.messages broker.address.ttl broker.version.fallback builtin.features
    client.dns.lookup client.software.name client.software.version connections.max.reauth.ms
    consume.callback.max.messages debug default.topic.config enable.background.thread
    enable.gapless.guarantee enable.metrics.push enable.random.seed enable.sparse.connections error_cb
    exclude.internal.topics fetch.error.backoff.ms fetch.queue.backoff.ms interceptor.classes
    internal.termination.signal key.deserializer key.serializer log.connection.close log.queue log.thread.name
    log_cb log_level logger max.block.ms max.poll.records message.copy.max.bytes metadata.max.idle.ms
    metadata.recovery.strategy
    metadata.recovery.rebootstrap.trigger.ms metric.reporters metrics.num.samples metrics.recording.level
    metrics.sample.window.ms offset.store.method offset.store.path offset.store.sync.interval.ms
    offset_commit_cb on_commit on_delivery opaque partitioner.adaptive.partitioning.enable
    partitioner.availability.timeout.ms plugin.library.paths
    produce.offset.report queue.buffering.backpressure.threshold queue.buffering.max.kbytes
    queue.buffering.max.messages queued.max.messages.kbytes queued.min.messages queuing.strategy
    socket.blocking.max.ms socket.max.fails statistics.interval.ms stats_cb sticky.partitioning.linger.ms
    throttle_cb topic.blacklist topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
    topic.metadata.refresh.sparse value.deserializer value.serializer
    """.split()  # noqa: SIM905  a column of quotes would say no more
)

_JAVA_STORE = "Java's key stores cannot be read; give PEM files: ssl.ca.location, ssl.certificate.location, …"
_KERBEROS = "Kerberos is not spoken; use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
# What would change how safe a connection is, and can only be refused.
REFUSED = {
    "ssl.truststore.location": _JAVA_STORE,
    "ssl.truststore.password": _JAVA_STORE,
    "ssl.keystore.location": _JAVA_STORE,
    "ssl.keystore.password": _JAVA_STORE,
    "sasl.kerberos.service.name": _KERBEROS,
    "sasl.kerberos.keytab": _KERBEROS,
    "sasl.kerberos.principal": _KERBEROS,
    "sasl.jaas.config": "give sasl.username and sasl.password",
    "ssl.crl.location": "revocation lists are not checked here",
    "sasl.oauthbearer.method": "tokens are not fetched here; give oauth_cb or sasl.oauthbearer.token",
    "sasl.oauthbearer.token.endpoint.url": "tokens are not fetched here; give oauth_cb or sasl.oauthbearer.token",
}
