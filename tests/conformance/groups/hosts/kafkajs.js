// A member by kafkajs: commands in, events out, a JSON line each. Its own assigner has a name that no other library
// knows, so this host brings one that answers to the name of Kafka's range assignor.
'use strict'

const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')
const { MemberMetadata, MemberAssignment } = require('kafkajs/src/consumer/assignerProtocol')

const emit = line => process.stdout.write(JSON.stringify(line) + '\n')

const range = ({ cluster }) => ({
  name: 'range',
  version: 1,

  async assign({ members }) {
    const assignment = new Map(members.map(({ memberId }) => [memberId, {}]))
    const subscribers = new Map()
    for (const { memberId, memberMetadata } of members) {
      for (const topic of MemberMetadata.decode(memberMetadata).topics) {
        subscribers.set(topic, [...(subscribers.get(topic) ?? []), memberId])
      }
    }
    for (const [topic, memberIds] of subscribers) {
      await cluster.addTargetTopic(topic)
      const partitions = cluster.findTopicPartitionMetadata(topic).map(each => each.partitionId)
      share(partitions.sort((a, b) => a - b), memberIds.sort(), (memberId, part) => {
        assignment.get(memberId)[topic] = part
      })
    }
    return [...assignment].map(([memberId, each]) => ({
      memberId,
      memberAssignment: MemberAssignment.encode({ version: this.version, assignment: each }),
    }))
  },

  protocol({ topics }) {
    return { name: this.name, metadata: subscription(topics) }
  },
})

// Version 1 of a consumer's subscription ends with the partitions that it owns: none, here.
function subscription(topics) {
  const metadata = MemberMetadata.encode({ version: 1, topics })
  return Buffer.concat([metadata, Buffer.from([0, 0, 0, 0])])
}

function share(partitions, memberIds, give) {
  let position = 0
  memberIds.forEach((memberId, index) => {
    const more = index < partitions.length % memberIds.length ? 1 : 0
    const size = Math.floor(partitions.length / memberIds.length) + more
    if (size > 0) give(memberId, partitions.slice(position, position + size))
    position += size
  })
}

class Hosted {
  next = new Map()
  owned = []

  async join({ how }) {
    const kafka = new Kafka({
      clientId: how.client_id,
      brokers: [how.bootstrap],
      logLevel: logLevel.NOTHING,
      retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 100 },
    })
    this.kafka = kafka
    this.groupId = how.group
    this.consumer = kafka.consumer({
      groupId: how.group,
      sessionTimeout: how.session_timeout_ms,
      rebalanceTimeout: how.rebalance_timeout_ms,
      heartbeatInterval: how.heartbeat_ms,
      metadataMaxAge: how.metadata_age_ms,
      maxWaitTimeInMs: 50,
      partitionAssigners: how.assignor === 'range' ? [range] : undefined,
    })
    this.watch()
    await this.consumer.connect()
    const topics = how.pattern ? [new RegExp(how.pattern)] : how.topics
    await this.consumer.subscribe({ topics, fromBeginning: how.reset === 'earliest' })
    // It returns with the first assignment; a test may have to do something for that.
    this.running = this.consumer.run({
      autoCommit: how.auto_commit_ms !== null,
      autoCommitInterval: how.auto_commit_ms,
      eachBatchAutoResolve: true,
      eachBatch: async ({ batch }) => this.polled(batch),
    })
    this.running.catch(error => emit({ event: 'failed', code: error.code ?? -1, detail: String(error) }))
  }

  watch() {
    const { GROUP_JOIN, REBALANCING, CRASH } = this.consumer.events
    this.consumer.on(REBALANCING, () => this.revoked())
    this.consumer.on(GROUP_JOIN, ({ payload }) => {
      this.revoked()
      this.owned = Object.entries(payload.memberAssignment).flatMap(([topic, each]) => each.map(index => [topic, index]))
      emit({ event: 'assigned', places: this.owned })
    })
    this.consumer.on(CRASH, ({ payload }) => {
      const code = payload.error.code ?? payload.error.cause?.code ?? -1
      emit({ event: payload.restart ? 'noted' : 'failed', code, detail: String(payload.error) })
      this.revoked()
    })
  }

  revoked() {
    if (this.owned.length) emit({ event: 'revoked', places: this.owned })
    this.owned = []
    this.next.clear()
  }

  polled({ topic, partition, messages }) {
    const offsets = messages.map(each => Number(each.offset))
    this.next.set(JSON.stringify([topic, partition]), offsets[offsets.length - 1] + 1)
    emit({ event: 'polled', topic, partition, offsets })
  }

  async commit({ offsets }) {
    const wanted = offsets ?? [...this.next].map(([place, offset]) => [...JSON.parse(place), offset])
    await this.consumer.commitOffsets(
      wanted.map(([topic, partition, offset]) => ({ topic, partition, offset: String(offset) }))
    )
  }

  async committed({ places }) {
    const admin = this.kafka.admin()
    await admin.connect()
    const found = await admin.fetchOffsets({ groupId: this.groupId, topics: [...new Set(places.map(([topic]) => topic))] })
    await admin.disconnect()
    return places.map(([topic, index]) => {
      const { partitions } = found.find(each => each.topic === topic)
      const offset = Number(partitions.find(each => each.partition === index).offset)
      return offset >= 0 ? offset : null
    })
  }

  seek({ topic, partition, offset }) {
    this.consumer.seek({ topic, partition, offset: String(offset) })
  }

  async close() {
    await this.consumer.disconnect()
    this.revoked()
  }
}

async function main() {
  const hosted = new Hosted()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { id, call, member, ...command } = JSON.parse(line)
    try {
      emit({ answer: id, result: (await hosted[call](command)) ?? null })
    } catch (error) {
      emit({ answer: id, error: error.code ?? -1, detail: String(error.stack ?? error) })
    }
    if (call === 'close') break
  }
  process.exit(0)
}

main()
