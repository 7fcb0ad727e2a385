// Transactions by kafkajs behind JSON lines. Reading uses its Fetch and its own Batch, which leaves aborted records out.
'use strict'

const Batch = require('kafkajs/src/consumer/batch')
const { kafka, leaderOf, bytes, text, serve } = require('../clients/kafkajs_driver.js')

const READ_UNCOMMITTED = 0
const READ_COMMITTED = 1
const BYTES_MAX = 4000000
const opened = {}

const calls = {
  async open({ name, bootstrap, id, timeout_ms }) {
    const producer = kafka(bootstrap).producer({
      transactionalId: id,
      transactionTimeout: timeout_ms,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
    })
    await producer.connect()
    opened[name] = { producer }
  },

  // It becomes the producer of its transactional id with its first transaction.
  async init({ name }) {
    opened[name].first = await opened[name].producer.transaction()
  },

  async begin({ name }) {
    const each = opened[name]
    each.transaction = each.first ?? (await each.producer.transaction())
    each.first = undefined
  },

  async send({ name, topic, partition, key, values }) {
    const messages = values.map(value => ({ key: bytes(key), value: bytes(value), partition }))
    const [report] = await opened[name].transaction.send({ topic, messages })
    return messages.map((_, index) => Number(report.baseOffset) + index)
  },

  async send_offsets({ name, group, offsets }) {
    const topics = offsets.map(([topic, partition, offset]) => ({ topic, partitions: [{ partition, offset: String(offset) }] }))
    await opened[name].transaction.sendOffsets({ consumerGroupId: group, topics })
  },

  commit: ({ name }) => opened[name].transaction.commit(),
  abort: ({ name }) => opened[name].transaction.abort(),
  close: ({ name }) => opened[name].producer.disconnect(),

  async read(request) {
    const { topic, partition, committed } = request
    const broker = await leaderOf(request)
    const found = []
    for (let next = request.start, batch; !batch?.isEmptyIncludingFiltered(); ) {
      const { responses } = await broker.fetch({
        isolationLevel: committed ? READ_COMMITTED : READ_UNCOMMITTED,
        maxWaitTime: 20,
        minBytes: 1,
        topics: [{ topic, partitions: [{ partition, fetchOffset: String(next), maxBytes: BYTES_MAX }] }],
      })
      batch = new Batch(topic, String(next), responses[0].partitions[0])
      found.push(...batch.messages.map(({ offset, value }) => [Number(offset), text(value)]))
      next = Number(batch.lastOffset()) + 1
    }
    return found
  },
}

serve(calls)
