// kafkajs behind JSON lines: a request a line on standard input, an answer a line on standard output.
'use strict'

const readline = require('readline')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, AssignerProtocol, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const socketFactory = require('kafkajs/src/network/socketFactory')
const { createLogger } = require('kafkajs/src/loggers')
const LoggerConsole = require('kafkajs/src/loggers/console')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const { ZstdCodec } = require('zstd-codec')

const EARLIEST = -2
const LATEST = -1
const TIMEOUT_MS = 30000
const DEFAULT_CONFIG_SOURCE = 5
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: encoder => lz4.compressFrame(encoder.buffer),
  decompress: buffer => lz4.decompressFrame(buffer),
})

const zstd = new Promise(resolve => ZstdCodec.run(codec => resolve(new codec.Streaming())))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async buffer => Buffer.from((await zstd).decompress(buffer)),
})

const clients = {}

function kafka(bootstrap) {
  clients.kafka ??= new Kafka({ clientId: 'driver', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 3 } })
  return clients.kafka
}

async function connected(name, make) {
  if (!clients[name]) {
    const client = make()
    await client.connect()
    clients[name] = client
  }
  return clients[name]
}

const admin = ({ bootstrap }) => connected('admin', () => kafka(bootstrap).admin())

const producer = ({ bootstrap, idempotent }) =>
  connected(`producer ${idempotent}`, () =>
    kafka(bootstrap).producer({ idempotent, maxInFlightRequests: idempotent ? 1 : null, allowAutoTopicCreation: true })
  )

const cluster = ({ bootstrap }) =>
  connected(
    'cluster',
    () =>
      new Cluster({
        logger: createLogger({ level: logLevel.NOTHING, logCreator: LoggerConsole }),
        retry: { retries: 3 },
        offsets: new Map(),
        socketFactory: socketFactory(),
        brokers: [bootstrap],
        clientId: 'driver',
        connectionTimeout: 5000,
        requestTimeout: TIMEOUT_MS,
        enforceRequestTimeout: true,
        metadataMaxAge: 300000,
        allowAutoTopicCreation: false,
      })
  )

const bytes = text => (text === null ? null : Buffer.from(text, 'base64'))
const text = value => (value === null || value === undefined ? null : Buffer.from(value).toString('base64'))

function headerMap(pairs) {
  const map = {}
  for (const [name, value] of pairs) {
    const item = bytes(value)
    map[name] = name in map ? [].concat(map[name], [item]) : item
  }
  return map
}

const headerPairs = map =>
  Object.entries(map).flatMap(([name, value]) =>
    Array.isArray(value) ? value.map(each => [name, text(each)]) : [[name, text(value)]]
  )

// The topic's partitions with their leaders, from a Metadata request of kafkajs's own.
async function leaderOf(request) {
  const source = await cluster(request)
  await source.addTargetTopic(request.topic)
  const metadata = source.findTopicPartitionMetadata(request.topic)
  const place = metadata.find(({ partitionId }) => partitionId === request.partition)
  if (!place) {
    await source.refreshMetadata()
    return leaderOf(request)
  }
  return source.findBroker({ nodeId: String(place.leader) })
}

async function offsetFor(request, when) {
  const broker = await leaderOf(request)
  const topics = [{ topic: request.topic, partitions: [{ partition: request.partition, timestamp: when }] }]
  const { responses } = await broker.listOffsets({ topics })
  const [{ offset, timestamp }] = responses[0].partitions
  return { offset: Number(offset), timestamp: timestamp === undefined ? null : Number(timestamp) }
}

const describe = record => ({
  offset: Number(record.offset),
  key: text(record.key),
  value: text(record.value),
  headers: headerPairs(record.headers),
  timestamp: Number(record.timestamp),
  timestamp_type: record.batchContext.timestampType === 1 ? 'append' : 'create',
})

const calls = {
  async produce(request) {
    const sender = await producer(request)
    const messages = request.records.map(record => ({
      key: bytes(record.key),
      value: bytes(record.value),
      headers: headerMap(record.headers),
      partition: request.partition,
      ...(record.timestamp === null ? {} : { timestamp: String(record.timestamp) }),
    }))
    const acks = request.acks === 'all' ? -1 : Number(request.acks)
    const [report] = await sender.send({ topic: request.topic, messages, acks, compression: CODECS[request.codec] })
    return acks === 0 ? [] : messages.map((_, index) => Number(report.baseOffset) + index)
  },

  async consume(request) {
    const special = request.start === EARLIEST || request.start === LATEST
    let next = special ? (await offsetFor(request, request.start)).offset : request.start
    const broker = await leaderOf(request)
    const received = []
    const deadline = Date.now() + TIMEOUT_MS
    while (received.length < request.count) {
      const partitions = [{ partition: request.partition, fetchOffset: String(next), maxBytes: 4000000 }]
      const topics = [{ topic: request.topic, partitions }]
      const { responses } = await broker.fetch({ isolationLevel: 0, maxWaitTime: 50, minBytes: 1, topics })
      for (const record of responses[0].partitions[0].messages) {
        if (Number(record.offset) >= next && received.length < request.count) {
          next = Number(record.offset) + 1
          received.push(describe(record))
        }
      }
      if (Date.now() > deadline) {
        throw Object.assign(new Error(`got ${received.length} of ${request.count} records`), { timeout: true })
      }
    }
    return received
  },

  offset_at: request => offsetFor(request, request.when),

  async create_topic(request) {
    const configEntries = Object.entries(request.config).map(([name, value]) => ({ name, value }))
    const { topic, partitions, replication } = request
    const wanted = { topic, numPartitions: partitions, replicationFactor: replication, configEntries }
    const created = await (await admin(request)).createTopics({ topics: [wanted] })
    // kafkajs answers false instead of telling this one error.
    if (!created) throw Object.assign(new Error('the topic exists'), { code: 36 })
    return null
  },

  delete_topic: async request => (await admin(request)).deleteTopics({ topics: [request.topic] }).then(() => null),
  list_topics: async request => (await admin(request)).listTopics(),

  async describe_topic(request) {
    const { topics } = await (await admin(request)).fetchTopicMetadata({ topics: [request.topic] })
    const partitions = topics[0].partitions.map(({ partitionId, leader, replicas, isr }) => [
      partitionId,
      { leader, replicas, isr },
    ])
    return Object.fromEntries(partitions)
  },

  async create_partitions(request) {
    const topicPartitions = [{ topic: request.topic, count: request.total }]
    return (await admin(request)).createPartitions({ topicPartitions }).then(() => null)
  },

  async describe_config(request) {
    const type = ConfigResourceTypes[request.kind.toUpperCase()]
    const { resources } = await (await admin(request)).describeConfigs({ resources: [{ type, name: request.name }] })
    const entries = resources[0].configEntries.map(entry => [
      entry.configName,
      {
        value: entry.configValue,
        is_default: entry.configSource === DEFAULT_CONFIG_SOURCE || entry.isDefault === true,
        read_only: entry.readOnly,
        sensitive: entry.isSensitive,
      },
    ])
    return Object.fromEntries(entries)
  },

  async alter_config(request) {
    const configEntries = Object.entries(request.config).map(([name, value]) => ({ name, value }))
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: request.topic, configEntries }]
    return (await admin(request)).alterConfigs({ resources }).then(() => null)
  },

  async delete_records(request) {
    const partitions = [{ partition: request.partition, offset: String(request.before) }]
    const client = await admin(request)
    // deleteTopicRecords knows only topics that this admin has met before.
    await client.fetchTopicOffsets(request.topic)
    await client.deleteTopicRecords({ topic: request.topic, partitions })
    return (await offsetFor(request, EARLIEST)).offset
  },

  async describe_cluster(request) {
    const { brokers, controller, clusterId } = await (await admin(request)).describeCluster()
    const nodes = Object.fromEntries(brokers.map(({ nodeId, host, port }) => [nodeId, [host, port]]))
    return { cluster_id: clusterId, controller, nodes }
  },

  groups: async request => (await (await admin(request)).listGroups()).groups.map(each => each.groupId),

  async describe_group(request) {
    const { groups } = await (await admin(request)).describeGroups([request.group])
    const members = groups[0].members.map(({ clientId, memberAssignment }) => {
      const { assignment } = AssignerProtocol.MemberAssignment.decode(memberAssignment) ?? { assignment: {} }
      return [clientId, Object.entries(assignment).flatMap(([topic, each]) => each.map(index => [topic, index]))]
    })
    return { state: groups[0].state, members: Object.fromEntries(members) }
  },

  async group_offsets(request) {
    const found = await (await admin(request)).fetchOffsets({ groupId: request.group, topics: [request.topic] })
    return Object.fromEntries(found[0].partitions.map(each => [each.partition, Number(each.offset)]))
  },

  async alter_group_offsets(request) {
    const partitions = Object.entries(request.offsets).map(([partition, offset]) => ({
      partition: Number(partition),
      offset: String(offset),
    }))
    return (await admin(request)).setOffsets({ groupId: request.group, topic: request.topic, partitions })
  },

  delete_group: async request => (await admin(request)).deleteGroups([request.group]).then(() => null),
}

function codeOf(error) {
  for (let each = error; each; each = each.cause ?? each.errors?.[0] ?? each.partitions?.[0]?.error ?? each.groups?.[0]?.error) {
    if (typeof each.code === 'number') return each.code
  }
  return null
}

async function answer(calls, line) {
  const request = JSON.parse(line)
  try {
    return { result: (await calls[request.call](request)) ?? null }
  } catch (error) {
    return { error: codeOf(error), timeout: error.timeout === true, detail: String(error.stack ?? error) }
  }
}

async function serve(calls) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await answer(calls, line)) + '\n')
  }
  process.exit(0)
}

module.exports = { kafka, leaderOf, bytes, text, serve }

if (require.main === module) serve(calls)
