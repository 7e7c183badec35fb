// One kafkajs member of the lab. Arguments: the topic, and the settings as JSON.
//
// Orders are lines on standard input: "leave" closes the member, "block SECONDS" makes its handler wait before the next
// record. When standard input ends, the lab has ended, and the program exits at once.
const readline = require('node:readline')
const { Kafka, logLevel } = require('kafkajs')

const [topic, given] = process.argv.slice(2)
const settings = JSON.parse(given)
const kafka = new Kafka({
  brokers: settings.bootstrap_servers.split(','),
  clientId: settings.client_id,
  logLevel: logLevel.ERROR,
})
const consumer = kafka.consumer({
  groupId: settings.group_id,
  sessionTimeout: settings.session_timeout_ms,
  heartbeatInterval: settings.heartbeat_interval_ms,
})
let blockedUntil = 0

async function handle() {
  const left = blockedUntil - Date.now()
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, left))
}

async function leave() {
  await consumer.disconnect()
  process.exit(0)
}

async function main() {
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({ autoCommitInterval: settings.auto_commit_interval_ms, eachMessage: handle })
}

const orders = readline.createInterface({ input: process.stdin })
orders.on('line', (line) => {
  const [order, seconds] = line.split(' ')
  if (order === 'leave') leave()
  else blockedUntil = Date.now() + 1000 * Number(seconds)
})
orders.on('close', () => process.exit(0))
main().catch((error) => {
  console.error(error)
  process.exit(1)
})
